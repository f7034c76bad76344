//! Gives the library the driver's name, so that whoever loads `libcuda.so.1` gets the one that is loaded already.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo:rerun-if-changed=build.rs");
}
