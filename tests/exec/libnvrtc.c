// Takes the place of NVRTC: it compiles anything to what stands in the file that the variable names, and to an empty cubin.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char ptx[1 << 20];
static size_t length;

int nvrtcCreateProgram(void **program, const char *source) {
    FILE *file = fopen(getenv("FAKE_PTX"), "r");
    *program = ptx;
    length = file == NULL || source == NULL ? 0 : fread(ptx, 1, sizeof ptx - 1, file);
    return length == 0;
}

int nvrtcCompileProgram(void *program) { return program != ptx; }

int nvrtcGetPTXSize(void *program, size_t *size) {
    *size = length + 1;
    return program != ptx;
}

int nvrtcGetPTX(void *program, char *to) {
    memcpy(to, ptx, length + 1);
    return program != ptx;
}

int nvrtcGetCUBINSize(void *program, size_t *size) {
    *size = 64;
    return program != ptx;
}

int nvrtcGetCUBIN(void *program, char *to) {
    memset(to, 0, 64);
    memcpy(to, "\177ELF\2\1\1", 7);
    return program != ptx;
}
