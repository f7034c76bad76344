// Asks the driver for its version. The first argument says how the driver is found, the second is a path, if one is needed.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LINKED
int cuInit(unsigned);
int cuDriverGetVersion(int *);
#endif

static void *loaded(void *library) {
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        printf("not found\n");
        exit(1);
    }
    return library;
}

static int version_of(void *library) {
    int (*init)(unsigned) = dlsym(library, "cuInit");
    int (*get)(int *) = dlsym(library, "cuDriverGetVersion");
    int version;
    return init && get && init(0) == 0 && get(&version) == 0 ? version : -1;
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "", *path = count > 2 ? arguments[2] : "";
    int version = -1;
    if (strcmp(how, "linked") == 0) {
#ifdef LINKED
        if (cuInit(0) != 0 || cuDriverGetVersion(&version) != 0)
            version = -1;
#endif
    } else if (strcmp(how, "dlopen") == 0) {
        version = version_of(loaded(dlopen(path, RTLD_NOW | RTLD_LOCAL)));
    } else if (strcmp(how, "deep") == 0) {
        version = version_of(loaded(dlopen(path, RTLD_LAZY | RTLD_DEEPBIND)));
    } else if (strcmp(how, "default") == 0) {
        version = version_of(RTLD_DEFAULT);
    } else if (strcmp(how, "namespace") == 0) {
        version = version_of(loaded(dlmopen(LM_ID_NEWLM, path, RTLD_NOW)));
    } else if (strcmp(how, "plugin") == 0) {
        // Only the run path of this program says where it is.
        int (*get)(void) = dlsym(loaded(dlopen("libplugin.so", RTLD_NOW)), "plugin_version");
        version = get ? get() : -1;
    }
    printf("%d\n", version);
    return version < 0;
}
