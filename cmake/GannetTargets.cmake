# The definitions of all kinds of targets of Gannet.

option(GANNET_WERROR "Treat warnings as errors" ON)
set(GANNET_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")
# The default binary runs on any x86-64 of the last decade (Haswell, Zen); -DGANNET_MARCH=native is for measurements.
set(GANNET_MARCH "x86-64-v3" CACHE STRING "Value of -march")

add_library(gannet_flags INTERFACE)
target_compile_options(gannet_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                       -march=${GANNET_MARCH} -fno-omit-frame-pointer
                       # No fused multiply-add by choice of the optimiser: a simulated run must be the same in every
                       # build, and models are trained in floating point.
                       -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # At -O3 it warns of overlapping copies in `"literal" + string` (GCC bug 105651).
  target_compile_options(gannet_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The compiler's own collection of garbage takes a tenth of its time, and saves a quarter of its memory.
  target_compile_options(gannet_flags INTERFACE --param=ggc-min-expand=10000)
endif()
if(GANNET_WERROR)
  target_compile_options(gannet_flags INTERFACE -Werror)
endif()
# Links a program in a tenth of the time.
find_program(GANNET_MOLD mold)
if(GANNET_MOLD)
  target_link_options(gannet_flags INTERFACE -fuse-ld=mold)
endif()
if(GANNET_SANITIZE)
  target_compile_options(gannet_flags INTERFACE -fsanitize=${GANNET_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(gannet_flags INTERFACE -fsanitize=${GANNET_SANITIZE})
  if(GANNET_SANITIZE MATCHES thread)
    # std::atomic_thread_fence: a warning in a system header, which a precompiled header is not. (Where a fence orders
    # what others read, the accesses themselves are atomic.)
    target_compile_options(gannet_flags INTERFACE -Wno-tsan)
  endif()
  # GCC's manual: sanitizers cause false positives of this warning. (With precompiled headers it warns in <regex>.)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(gannet_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

# The headers of the standard library and of Abseil are 19 of 20 lines that a source file includes. They are compiled once
# for all libraries, and once, with GoogleTest, for all tests. (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON: not at all.)
# gannet_precompile(target [HEADERS ... DEPS ...] [PIC]): these, and HEADERS of the libraries DEPS.
function(gannet_precompile name)
  cmake_parse_arguments(ARG "PIC" "" "HEADERS;DEPS" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ${ARG_PIC})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_libraries(${name} PRIVATE absl::flat_hash_map absl::status absl::statusor absl::strings absl::str_format
                        absl::time ${ARG_DEPS} gannet_flags)
  target_precompile_headers(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/common_headers.h ${ARG_HEADERS})
endfunction()
gannet_precompile(gannet_precompiled PIC)

# For code that is not on a transaction's path: much of it writes reports. (CLI11's headers define objects, which each
# source would make, also one that reads no flags.)
find_package(nlohmann_json REQUIRED)
gannet_precompile(gannet_quick_precompiled PIC HEADERS <nlohmann/json.hpp> DEPS nlohmann_json::nlohmann_json)
set(GANNET_QUICK $<$<CONFIG:Release>:-O1>)
target_compile_options(gannet_quick_precompiled PRIVATE ${GANNET_QUICK})

# gannet_compile_quickly(library): at -O3 half of the compile time of these sources is optimisation that does not matter
# when they run.
function(gannet_compile_quickly name)
  target_compile_options(${name} PRIVATE ${GANNET_QUICK})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)  # as the headers were precompiled
  target_precompile_headers(${name} REUSE_FROM gannet_quick_precompiled)
endfunction()

# Sources with mutants (base/mutant.h). Test programs compile them once more, with the mutants enabled, and so replace
# those of the libraries.
set(GANNET_MUTATED_SOURCES
    index/catfish/change.cc index/catfish/client/remote_search.cc index/catfish/draft.cc index/catfish/search.cc
    index/claim_boards.cc
    index/dex/cache/frames.cc index/dex/cache/page_cache.cc index/dex/kept_leaves.cc index/dex/paths.cc
    index/dex/remote_dex.cc
    index/dolphin/leaf.cc index/dolphin/leaf_changer.cc index/dolphin/leaf_draft.cc index/dolphin/leaf_repair.cc
    index/dolphin/ternary_lock.cc
    index/shared_leaf/blocks/leaf_blocks.cc index/shared_leaf/change/leaf_channel.cc
    index/shared_leaf/claim/claim_holder.cc
    index/shared_leaf/leaf/leaf_draft.cc index/shared_leaf/leaf/leaf_repair.cc
    index/shared_leaf/leaf_index.cc index/shared_leaf/owner/own_leaves.cc rdma/versioned.cc
    txn/access/failure.cc txn/access/write_buffer.cc txn/commit/commit.cc txn/commit/decision.cc txn/commit/local_writes.cc
    txn/commit/one_sided_inserts.cc txn/commit/remote_writes.cc txn/commit/validation.cc txn/peer/pending_completer.cc
    txn/peer/owner_reads.cc txn/peer/owner_scan.cc txn/peer/owner_service.cc txn/peer/repair.cc txn/record/record.cc
    txn/run/session.cc txn/run/transaction_impl.cc txn/run/transaction.cc)
list(TRANSFORM GANNET_MUTATED_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)

# Many sources of a library are compiled as one: in eights, compilers work a third less than one by one. So no two sources
# of a library may define one name in unnamed namespaces. (-DGANNET_UNITY=OFF: one by one, as clang-tidy needs them.)
option(GANNET_UNITY "Compile many sources of a library as one" ON)
set(GANNET_UNITY_SIZE 16)

# gannet_unity(target [size]): the sources of the target are compiled so, `size` of them as one.
function(gannet_unity name)
  set(size ${GANNET_UNITY_SIZE})
  if(ARGC GREATER 1)
    set(size ${ARGV1})
  endif()
  if(NOT GANNET_UNITY)
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${name} SOURCES)
  set(count 0)
  foreach(source IN LISTS sources)
    if(${CMAKE_CURRENT_SOURCE_DIR}/${source} IN_LIST GANNET_MUTATED_SOURCES)
      # A test program replaces all of them that are in one folder, or none.
      string(REGEX REPLACE "/.*" "" folder ${source})
      set(group mutated_${folder})
    else()
      math(EXPR group "${count} / ${size}")
      math(EXPR count "${count} + 1")
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP unit_${group})
  endforeach()
  gannet_unity_flags(${name})
endfunction()

# gannet_unity_by_folder(target source...): these sources of the target are compiled as one for each of their folders.
function(gannet_unity_by_folder name)
  if(NOT GANNET_UNITY)
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  gannet_unity_flags(${name})
endfunction()

function(gannet_unity_flags name)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes the sources of a unit for headers, whose types in unnamed namespaces it warns of.
    target_compile_options(${name} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# gannet_library(name [INTERNAL] [COMPILE_QUICKLY] [UNITY_SIZE n] SOURCES ... DEPS ...): a static library of one folder;
# its includes are relative to the root. An INTERNAL library is for our own programs and tests, and is not installed.
# COMPILE_QUICKLY: nothing in it is on a transaction's path. UNITY_SIZE: n sources are compiled as one.
function(gannet_library name)
  cmake_parse_arguments(ARG "INTERNAL;COMPILE_QUICKLY" "UNITY_SIZE" "SOURCES;DEPS" ${ARGN})
  add_library(gannet_${name} STATIC ${ARG_SOURCES})
  add_library(gannet::${name} ALIAS gannet_${name})
  set_target_properties(gannet_${name} PROPERTIES EXPORT_NAME ${name})
  gannet_unity(gannet_${name} ${ARG_UNITY_SIZE})
  target_include_directories(gannet_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<INSTALL_INTERFACE:include/gannet>)
  target_compile_features(gannet_${name} PUBLIC cxx_std_20)
  target_link_libraries(gannet_${name} PUBLIC ${ARG_DEPS} PRIVATE $<BUILD_INTERFACE:gannet_flags>)
  if(ARG_COMPILE_QUICKLY)
    gannet_compile_quickly(gannet_${name})
  else()
    set_target_properties(gannet_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_precompile_headers(gannet_${name} REUSE_FROM gannet_precompiled)
  endif()
  # For Install.cmake.
  if(NOT ARG_INTERNAL)
    set_property(GLOBAL APPEND PROPERTY GANNET_LIBRARIES ${name})
    set_property(GLOBAL APPEND PROPERTY GANNET_DEPENDENCIES ${ARG_DEPS})
  endif()
endfunction()

# gannet_test_code(target [BUSY]): its sources are tests, compiled at -Og: at -O1 that takes a third longer, and at -O0
# they run twice as long, since functions of the standard library that they share with libraries are theirs. BUSY: they
# run so long that -O1 pays.
function(gannet_test_code name)
  set(level g)
  if("BUSY" IN_LIST ARGN)
    set(level 1)
  endif()
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O${level}>)
  target_precompile_headers(${name} REUSE_FROM gannet_test_precompiled_${level})
endfunction()
if(GANNET_BUILD_TESTS)
  find_package(GTest REQUIRED)
  foreach(level g 1)
    gannet_precompile(gannet_test_precompiled_${level}
                      HEADERS <gmock/gmock.h> <gtest/gtest.h> DEPS GTest::gtest GTest::gmock)
    target_compile_options(gannet_test_precompiled_${level} PRIVATE $<$<CONFIG:Release>:-O${level}>)
  endforeach()
endif()

# gannet_test_unity(target): its sources are compiled together.
function(gannet_test_unity name)
  if(GANNET_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${GANNET_UNITY_SIZE})
    gannet_unity_flags(${name})
  endif()
endfunction()

# gannet_timeout(name seconds): ThreadSanitizer makes a test five times as slow, the others make it three times as slow.
function(gannet_timeout name seconds)
  if(GANNET_SANITIZE MATCHES thread)
    math(EXPR seconds "5 * ${seconds}")
  elseif(GANNET_SANITIZE)
    math(EXPR seconds "3 * ${seconds}")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds})
endfunction()

# gannet_test(name [IN program] [BUSY] [SEPARATELY] [MAIN] SOURCES ... DEPS ... [LABELS ...] [TIMEOUT s]): a CTest entry
# for the GoogleTest tests of these sources, with a program of its own. IN: in a program with other tests, which are compiled
# together, but run one by one (tests/support/test_main.cc). So the local names of a test are in a namespace that has the
# file's name. BUSY: see gannet_test_code; the first test of a program decides. SEPARATELY: each source of the program is
# compiled by itself. MAIN: one of them has the function main.
function(gannet_test name)
  cmake_parse_arguments(ARG "BUSY;SEPARATELY;MAIN" "IN;TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set(program ${name})
  set(selection)
  if(ARG_IN)
    set(program ${ARG_IN})
    set(selection ${ARG_SOURCES})
    list(FILTER selection INCLUDE REGEX "_test.cc$")
    if(NOT selection)
      message(FATAL_ERROR "${name} has no source *_test.cc whose tests could be selected in ${ARG_IN}")
    endif()
    list(TRANSFORM selection REPLACE ".*/" "")
    list(TRANSFORM selection PREPEND --source=)
  endif()
  if(NOT TARGET ${program})
    add_executable(${program})
    target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${program} PRIVATE GTest::gtest GTest::gmock gannet_flags)
    if(NOT ARG_MAIN)
      target_link_libraries(${program} PRIVATE gannet_test_main)
    endif()
    if(ARG_BUSY)
      gannet_test_code(${program} BUSY)
    else()
      gannet_test_code(${program})
    endif()
    if(NOT ARG_SEPARATELY)
      gannet_test_unity(${program})
    endif()
  endif()
  get_target_property(present ${program} SOURCES)
  foreach(source ${ARG_SOURCES})
    if(NOT source IN_LIST present)
      target_sources(${program} PRIVATE ${source})
    endif()
  endforeach()
  target_link_libraries(${program} PRIVATE ${ARG_DEPS})
  add_test(NAME ${name} COMMAND ${program} ${selection})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  gannet_timeout(${name} ${ARG_TIMEOUT})
endfunction()

# gannet_benchmark(name SOURCES ... DEPS ...): a program of bench/.
function(gannet_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark gannet_flags)
  target_compile_options(${name} PRIVATE -fPIC)  # as the headers were precompiled
  target_precompile_headers(${name} REUSE_FROM gannet_precompiled)
endfunction()
