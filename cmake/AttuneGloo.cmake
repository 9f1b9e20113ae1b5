# Gloo's headers as `attune::gloo`, for sources that include LibTorch's ProcessGroupGloo.hpp.
#
# LibTorch's wheel ships that header without the gloo headers that it includes. Every call into gloo
# happens inside libtorch_cpu, so the headers alone are needed, and no gloo library is linked.
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
if(NOT ATTUNE_GLOO_INCLUDE_DIR STREQUAL "/usr/include")  # as -isystem it would hide the compiler's
  target_include_directories(attune_gloo SYSTEM INTERFACE ${ATTUNE_GLOO_INCLUDE_DIR})
endif()
