// Takes the place of the installed driver, which the program should not get.

int cuInit(unsigned flags) {
    (void)flags;
    return 0;
}

int cuDriverGetVersion(int *version) {
    *version = 1;
    return 0;
}
