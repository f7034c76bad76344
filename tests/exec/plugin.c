// A library that needs the driver, as frameworks have them.

int cuDriverGetVersion(int *);

int plugin_version(void) {
    int version = 0;
    return cuDriverGetVersion(&version) == 0 ? version : -1;
}
