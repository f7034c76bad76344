// Takes the place of nvJitLink: it links anything to an empty cubin, and the PTX of a link is what it was given for link-time
// optimisation.

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LTO_IR = 3 };

struct Link {
    int parts, optimises, gives_ptx;
    char *ptx;
};

int __nvJitLinkCreate_13_0(struct Link **link, unsigned count, const char **options) {
    struct Link *made = calloc(1, sizeof *made);
    made->ptx = calloc(1, 1);
    for (unsigned at = 0; at < count; at++) {
        made->optimises |= strcmp(options[at], "-lto") == 0;
        made->gives_ptx |= strcmp(options[at], "-ptx") == 0;
    }
    *link = made;
    return made->gives_ptx && !made->optimises;
}

int __nvJitLinkAddData_13_0(struct Link *link, int kind, const void *data, size_t size, const char *name) {
    if (kind == 0 || data == NULL || size == 0 || name == NULL)
        return 1;
    link->parts++;
    if (kind != LTO_IR)
        return 0;
    link->ptx = realloc(link->ptx, strlen(link->ptx) + size + 1);
    strncat(link->ptx, data, size);
    return !link->optimises;
}

int __nvJitLinkComplete_13_0(struct Link *link) { return link->parts == 0; }

int __nvJitLinkGetLinkedCubinSize_13_0(struct Link *link, size_t *size) {
    *size = 64;
    return link->gives_ptx;
}

int __nvJitLinkGetLinkedCubin_13_0(struct Link *link, void *to) {
    memset(to, 0, 64);
    memcpy(to, "\177ELF\2\1\1", 7);
    return link->gives_ptx;
}

int __nvJitLinkGetLinkedPtxSize_13_0(struct Link *link, size_t *size) {
    *size = strlen(link->ptx) + 1;
    return !link->gives_ptx;
}

int __nvJitLinkGetLinkedPtx_13_0(struct Link *link, char *to) {
    strcpy(to, link->ptx);
    return !link->gives_ptx;
}

int __nvJitLinkDestroy_13_0(struct Link **link) {
    free((*link)->ptx);
    free(*link);
    *link = NULL;
    return 0;
}
