# LibTorch as the IMPORTED target `attune::torch`; with ATTUNE_CUDA, including its CUDA libraries.
#
# find_package(Torch) with a CUDA wheel requires nvcc even for CPU code, so this file names the
# libraries. By default it uses the wheel that scripts/setup puts into .deps/. For another LibTorch
# (2.11 or later, C++11 ABI), set -DATTUNE_TORCH_DIR=DIR to the folder with include/ and lib/.
# The SDK installs this file, so that other projects find LibTorch in the same way.
include_guard(GLOBAL)

set(ATTUNE_TORCH_VERSION_MIN 2.11)

set(_torch ${ATTUNE_TORCH_DIR})
if(NOT _torch)
  set(_torch ${PROJECT_SOURCE_DIR}/.deps/python/torch)
endif()

if(NOT EXISTS ${_torch}/lib/libtorch_cpu.so)
  if(ATTUNE_TORCH_DIR)
    message(FATAL_ERROR "ATTUNE_TORCH_DIR: ${_torch} has no lib/libtorch_cpu.so; name the folder "
                        "of a LibTorch with include/ and lib/")
  endif()
  message(FATAL_ERROR "LibTorch is not in ${_torch}: run scripts/setup, or name another LibTorch "
                      "with -DATTUNE_TORCH_DIR=DIR")
endif()

# The version macros moved to torch/headeronly in 2.10. Older headers are read to refuse their version.
set(_torch_version_header ${_torch}/include/torch/headeronly/version.h)
if(NOT EXISTS ${_torch_version_header})
  set(_torch_version_header ${_torch}/include/torch/csrc/api/include/torch/version.h)
endif()
if(NOT EXISTS ${_torch_version_header})
  message(FATAL_ERROR "${_torch} has no version.h among its headers: it is not a complete LibTorch")
endif()
file(STRINGS ${_torch_version_header} _lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
set(_torch_version "")
foreach(_line IN LISTS _lines)
  string(REGEX REPLACE ".*_(MAJOR|MINOR|PATCH) +([0-9]+).*" "\\2" _number "${_line}")
  list(APPEND _torch_version ${_number})
endforeach()
list(JOIN _torch_version "." _torch_version)
if(_torch_version VERSION_LESS ATTUNE_TORCH_VERSION_MIN)
  message(FATAL_ERROR "LibTorch in ${_torch} is ${_torch_version}; Attune needs "
                      "${ATTUNE_TORCH_VERSION_MIN} or later")
endif()
message(STATUS "LibTorch ${_torch_version} in ${_torch}")
set(ATTUNE_TORCH_FOUND_DIR ${_torch} CACHE INTERNAL "")  # in the cache, because this file is read only once
set(ATTUNE_TORCH_FOUND_VERSION ${_torch_version} CACHE INTERNAL "")

add_library(attune_torch_c10 SHARED IMPORTED GLOBAL)
set_target_properties(attune_torch_c10 PROPERTIES IMPORTED_LOCATION ${_torch}/lib/libc10.so)

add_library(attune_torch_cpu SHARED IMPORTED GLOBAL)
set_target_properties(attune_torch_cpu PROPERTIES IMPORTED_LOCATION ${_torch}/lib/libtorch_cpu.so)
target_link_libraries(attune_torch_cpu INTERFACE attune_torch_c10)
target_include_directories(attune_torch_cpu SYSTEM INTERFACE
                           ${_torch}/include ${_torch}/include/torch/csrc/api/include)
target_compile_definitions(attune_torch_cpu INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)

# The libraries that LibTorch needs are next to the wheel. At run time, LibTorch finds them by its
# RPATH; the linker needs these options.
file(GLOB _nvidia_libs LIST_DIRECTORIES true ${_torch}/../nvidia/*/lib)
foreach(_dir IN ITEMS ${_torch}/lib ${_nvidia_libs})
  target_link_options(attune_torch_cpu INTERFACE LINKER:-rpath-link,${_dir})
endforeach()

add_library(attune_torch INTERFACE IMPORTED GLOBAL)
add_library(attune::torch ALIAS attune_torch)
target_link_libraries(attune_torch INTERFACE attune_torch_cpu)

if(ATTUNE_CUDA)
  # The headers of a CUDA toolkit, or of NVIDIA's wheels next to torch.
  find_path(ATTUNE_CUDA_INCLUDE_DIR cuda_runtime_api.h
            HINTS ${_torch}/../nvidia/cu13/include $ENV{CUDA_HOME}/include /usr/local/cuda/include)
  find_path(ATTUNE_NCCL_INCLUDE_DIR nccl.h
            HINTS ${_torch}/../nvidia/nccl/include ${ATTUNE_CUDA_INCLUDE_DIR})
  if(NOT ATTUNE_CUDA_INCLUDE_DIR OR NOT ATTUNE_NCCL_INCLUDE_DIR)
    message(FATAL_ERROR "ATTUNE_CUDA needs CUDA's and NCCL's headers: install a CUDA toolkit and "
                        "NCCL, or set ATTUNE_CUDA_INCLUDE_DIR and ATTUNE_NCCL_INCLUDE_DIR")
  endif()
  add_library(attune_torch_cuda SHARED IMPORTED GLOBAL)
  set_target_properties(attune_torch_cuda PROPERTIES
                        IMPORTED_LOCATION ${_torch}/lib/libtorch_cuda.so)
  target_include_directories(attune_torch_cuda SYSTEM INTERFACE
                             ${ATTUNE_CUDA_INCLUDE_DIR} ${ATTUNE_NCCL_INCLUDE_DIR})
  if(EXISTS ${ATTUNE_CUDA_INCLUDE_DIR}/cccl)
    target_include_directories(attune_torch_cuda SYSTEM INTERFACE ${ATTUNE_CUDA_INCLUDE_DIR}/cccl)
  endif()
  target_compile_definitions(attune_torch_cuda INTERFACE ATTUNE_CUDA USE_C10D_NCCL)
  # libtorch_cuda registers its kernels when it is loaded. No symbol refers to it, so the linker would
  # leave it out.
  target_link_options(attune_torch_cuda INTERFACE
                      "LINKER:--no-as-needed,${_torch}/lib/libtorch_cuda.so"
                      "LINKER:--no-as-needed,${_torch}/lib/libc10_cuda.so")
  target_link_libraries(attune_torch INTERFACE attune_torch_cuda)
endif()
