# Toolchain file: builds for Linux on aarch64 with Debian's compiler and libraries for arm64, which
# packaging/cross-aarch64 installs.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# GCC 12 notes that it passes some types differently from GCC 9. No code here was compiled with GCC 9.
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)

# Without this, pkg-config would find the libraries of this machine.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)

# Debian's name of the architecture, for CPack.
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
