// Takes the place of nvJitLink: it links anything to an empty cubin.

#include <stddef.h>
#include <string.h>

static int parts;

int __nvJitLinkCreate_13_0(void **link) {
    *link = &parts;
    return 0;
}

int __nvJitLinkAddData_13_0(void *link, int kind, const void *data, size_t size, const char *name) {
    parts += kind != 0 && data != NULL && size > 0 && name != NULL;
    return link != &parts;
}

int __nvJitLinkComplete_13_0(void *link) { return link != &parts || parts == 0; }

int __nvJitLinkGetLinkedCubinSize_13_0(void *link, size_t *size) {
    *size = 64;
    return link != &parts;
}

int __nvJitLinkGetLinkedCubin_13_0(void *link, void *to) {
    memset(to, 0, 64);
    memcpy(to, "\177ELF\2\1\1", 7);
    return link != &parts;
}

int __nvJitLinkDestroy_13_0(void **link) {
    *link = NULL;
    return 0;
}
