# Build rules for all targets of Attune: C++20, the warnings in CONTRIBUTING.md, ccache if installed.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

find_program(ATTUNE_CCACHE ccache)
if(ATTUNE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ATTUNE_CCACHE})
endif()

find_package(Threads REQUIRED)

add_library(attune_options INTERFACE)
# Fused multiply-add instructions round differently, so random draws would differ between machines.
target_compile_options(attune_options INTERFACE -ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow
                                                 -Wnon-virtual-dtor -Wno-missing-field-initializers)
target_include_directories(attune_options INTERFACE ${PROJECT_SOURCE_DIR})
# By default, GCC collects garbage above 128 MB of memory. That takes a seventh of the compile time.
target_compile_options(attune_options INTERFACE
                       $<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=1500000>)
# GCC 12 gives false warnings about inlined strings at -O3 (GCC bug 105651).
target_compile_options(attune_options INTERFACE
                       $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict$<SEMICOLON>-Wno-maybe-uninitialized>)
set(is_test $<BOOL:$<TARGET_PROPERTY:ATTUNE_TEST>>)
if(ATTUNE_SANITIZE)
  # Tests use only the first sanitizer and no optimization. They compile in a third of the time.
  string(REGEX REPLACE ",.*" "" test_sanitizer "${ATTUNE_SANITIZE}")
  string(REPLACE "," "$<COMMA>" module_sanitizers "${ATTUNE_SANITIZE}")
  target_compile_options(attune_options INTERFACE
                         -fsanitize=$<IF:${is_test},${test_sanitizer},${module_sanitizers}> -fno-omit-frame-pointer
                         $<${is_test}:-O0>)
  target_link_options(attune_options INTERFACE -fsanitize=${ATTUNE_SANITIZE})
endif()

# A clean build spends most of its time on reading headers, so the sources of a target are compiled
# together, as one translation unit. Names in anonymous namespaces must therefore be unique within a
# target. Tools that check single sources (clang-tidy) turn this off.
option(ATTUNE_UNITY "Compile the sources of each target together" ON)
if(ATTUNE_UNITY)
  # GCC warns about members with types of anonymous namespaces outside the main file. With ATTUNE_UNITY,
  # the main file is generated and includes the sources.
  target_compile_options(attune_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

# attune_together(TARGET)
# Compiles the target's sources as one translation unit.
function(attune_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ATTUNE_UNITY} UNITY_BUILD_BATCH_SIZE 0)
endfunction()

# attune_precompile(TARGET HEADER...)
# Compiles the headers once for all sources of the target, which must have many sources that include
# them. Each source still includes what it uses.
function(attune_precompile target)
  if(ATTUNE_UNITY)
    list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ REGEX "^[^<]")
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# attune_library(NAME SOURCES ... [DEPENDS ...] [PRIVATE ...])
# Adds a static library `attune_NAME` with the alias `attune::NAME`.
function(attune_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  add_library(attune_${name} STATIC ${arg_SOURCES})
  add_library(attune::${name} ALIAS attune_${name})
  target_link_libraries(attune_${name} PUBLIC $<BUILD_INTERFACE:attune_options> ${arg_DEPENDS}
                                             PRIVATE ${arg_PRIVATE})
  attune_together(attune_${name})
endfunction()

# attune_test(NAME SOURCES ... [DEPENDS ...] [LABELS ...] [TIMEOUT seconds] [SEPARATE [PRECOMPILED ...]])
# Adds a GoogleTest program as one test of CTest. Under sanitizers, its timeout is ten times as long.
# SEPARATE: compiles each source by itself, because the sources use the same names. PRECOMPILED: see
# attune_precompile.
function(attune_test name)
  cmake_parse_arguments(arg "SEPARATE" "TIMEOUT" "SOURCES;DEPENDS;LABELS;PRECOMPILED" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE attune_options ${arg_DEPENDS} GTest::gmock_main)
  target_compile_definitions(${name} PRIVATE ATTUNE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES ATTUNE_TEST ON)
  if(NOT arg_SEPARATE)
    attune_together(${name})
  elseif(arg_PRECOMPILED)
    attune_precompile(${name} "<gmock/gmock.h>" ${arg_PRECOMPILED})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(ATTUNE_SANITIZE)
    math(EXPR arg_TIMEOUT "10 * ${arg_TIMEOUT}")
  endif()
  # Brief output shows only what failed.
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
                                          ENVIRONMENT GTEST_BRIEF=1)
endfunction()
