# Gloo's headers as `attune::gloo`, for sources that include LibTorch's ProcessGroupGloo.hpp.
#
# LibTorch's wheel contains that header, but not the gloo headers that it includes. Only libtorch_cpu
# calls gloo, so these targets need the headers and no gloo library.
include_guard(GLOBAL)
include(AttuneTorch)

find_path(ATTUNE_GLOO_INCLUDE_DIR gloo/rendezvous/store.h
          HINTS ${ATTUNE_TORCH_FOUND_DIR}/include ${ATTUNE_TORCH_FOUND_DIR}/include/third_party/gloo)
if(NOT ATTUNE_GLOO_INCLUDE_DIR)
  message(FATAL_ERROR "gloo's headers were not found: run scripts/setup (Debian: libgloo-dev), or "
                      "set ATTUNE_GLOO_INCLUDE_DIR")
endif()

add_library(attune_gloo INTERFACE IMPORTED GLOBAL)
add_library(attune::gloo ALIAS attune_gloo)
if(NOT ATTUNE_GLOO_INCLUDE_DIR STREQUAL "/usr/include")  # with -isystem /usr/include, the compiler would not find its own headers
  target_include_directories(attune_gloo SYSTEM INTERFACE ${ATTUNE_GLOO_INCLUDE_DIR})
endif()
