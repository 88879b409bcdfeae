# SPDX-License-Identifier: Apache-2.0
# How rooms, tools and unit tests are declared. A room links exactly what the layer table allows it to use.

find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)

add_library(kmm_options INTERFACE)
target_compile_definitions(kmm_options INTERFACE _FILE_OFFSET_BITS=64 KMM_VERSION="${PROJECT_VERSION}")
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(kmm_options INTERFACE _GLIBCXX_ASSERTIONS)
endif()

# kmm_sanitize: for what is linked into users' programs. The tests' own code goes without: it takes half of the
# time to compile,
# and is then the same object file in both build trees, which the compiler cache compiles once.
add_library(kmm_sanitize INTERFACE)
if(KMM_SANITIZE)
  # Left out: what AddressSanitizer, the processor or -Wcast-align notice as well, at a quarter of the time to compile.
  target_compile_options(kmm_sanitize INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                                                -fno-sanitize=null,alignment,vptr,object-size -Wcast-align=strict
                                                -fno-omit-frame-pointer)
  # At a fixed address: nobody relocates the sanitizers' 8 MB of tables at the start of each of the thousands of
  # processes of the goldens.
  target_link_options(kmm_options INTERFACE -fsanitize=address,undefined -no-pie)
  add_library(kmm_trace_pc STATIC ${CMAKE_CURRENT_LIST_DIR}/trace_pc.cpp)
  target_link_libraries(kmm_options INTERFACE kmm_trace_pc)
endif()
if(KMM_SANITIZE_THREAD)
  if(KMM_SANITIZE)
    message(FATAL_ERROR "KMM_SANITIZE and KMM_SANITIZE_THREAD exclude each other")
  endif()
  target_compile_options(kmm_sanitize INTERFACE -fsanitize=thread -fno-omit-frame-pointer -g1)
  target_link_options(kmm_options INTERFACE -fsanitize=thread)
endif()

add_library(kmm_warnings INTERFACE)
target_compile_options(kmm_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Wduplicated-cond -Wlogical-op -Wformat=2 -Wimplicit-fallthrough)
# g++ 12 takes optimised std::string and std::optional code for uninitialised reads and overlapping copies.
target_compile_options(kmm_warnings INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
# One unit of each room and each of its test binaries: with eight files a unit the library headers, of which all include
# much the same, were two fifths of the work.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)
if(CMAKE_UNITY_BUILD)
  # In one translation unit with its neighbours a .cpp file looks like a header to this warning.
  target_compile_options(kmm_warnings INTERFACE -Wno-subobject-linkage)
endif()
if(KMM_WERROR)
  target_compile_options(kmm_warnings INTERFACE -Werror)
endif()

# kmm_hardening: for what is linked into users' programs. A fault in a parser ends the program sooner than it is of
# use to somebody (install.hardened).
add_library(kmm_hardening INTERFACE)
if(NOT KMM_SANITIZE AND NOT KMM_SANITIZE_THREAD)
  target_compile_options(kmm_hardening INTERFACE -fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    target_compile_options(kmm_hardening INTERFACE -fcf-protection)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    target_compile_options(kmm_hardening INTERFACE -mbranch-protection=standard)
  endif()
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_BUILD_TYPE)
    target_compile_options(kmm_hardening INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)  # needs optimising
  endif()
endif()

# kmm_room(NAME SOURCES a.cpp ... USES room ... LIBS external ...)
# One static library kmm_NAME. USES become public dependencies; LIBS stay private (their headers are for adapters only).
function(kmm_room name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;LIBS" ${ARGN})
  add_library(kmm_${name} STATIC ${arg_SOURCES})
  target_include_directories(kmm_${name} PUBLIC ${PROJECT_SOURCE_DIR}/lib)
  target_link_libraries(kmm_${name} PUBLIC fmt::fmt PRIVATE kmm_warnings kmm_sanitize kmm_hardening)
  target_link_libraries(kmm_${name} PUBLIC kmm_options)
  if(KMM_SANITIZE)
    # Optimising takes long with sanitizers. It pays for what every process and most tests run through.
    target_compile_options(kmm_${name} PRIVATE $<IF:$<IN_LIST:${name},base;value;record>,-O1,-O0>)
    # For the fuzz targets: the rooms that read what others wrote.
    set(readers "value|api|image|trust|plan_[a-z]+|registry_[a-z]+|cluster_[a-z]+|kmod_[a-z]+")
    string(APPEND readers "|recipe_(govalue|golib|goyaml|template|sprig|functions)")
    if(name MATCHES "^(${readers})$")
      target_compile_options(kmm_${name} PRIVATE -fsanitize-coverage=trace-pc)
    endif()
  endif()
  if(KMM_SANITIZE_THREAD)
    # The same: a third of the time to compile. Threads of others wait for each other most of the time.
    set(busy base value api
      recipe_govalue recipe_golib recipe_goyaml recipe_template recipe_sprig recipe_functions
      recipe_chart recipe_resource recipe_plan)
    target_compile_options(kmm_${name} PRIVATE $<IF:$<IN_LIST:${name},${busy}>,-O1,-O0>)
  endif()
  # Every byte of a cluster's dump runs through these two, also in a build that is quick to make.
  if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND NOT KMM_SANITIZE AND NOT KMM_SANITIZE_THREAD AND name MATCHES
      "^(value|api)$")
    target_compile_options(kmm_${name} PRIVATE -O2)
  endif()
  foreach(room IN LISTS arg_USES)
    target_link_libraries(kmm_${name} PUBLIC kmm_${room})
  endforeach()
  target_link_libraries(kmm_${name} PRIVATE ${arg_LIBS})
endfunction()

# kmm_tool(NAME SOURCES ... USES ...): library kmm_tool_NAME (all but main.cpp) and the executable kmm-NAME.
function(kmm_tool name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;LIBS" ${ARGN})
  add_library(kmm_tool_${name} STATIC ${arg_SOURCES})
  target_include_directories(kmm_tool_${name} PUBLIC ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR}/tools)
  target_link_libraries(kmm_tool_${name} PUBLIC kmm_options PRIVATE kmm_warnings kmm_sanitize kmm_hardening)
  if(KMM_SANITIZE)
    target_compile_options(kmm_tool_${name} PRIVATE -O0)
  endif()
  foreach(room IN LISTS arg_USES)
    target_link_libraries(kmm_tool_${name} PUBLIC kmm_${room})
  endforeach()
  target_link_libraries(kmm_tool_${name} PRIVATE ${arg_LIBS})
  add_executable(kmm-${name} main.cpp)
  target_link_libraries(kmm-${name} PRIVATE kmm_tool_${name} kmm_warnings kmm_sanitize kmm_hardening)
  if(NOT KMM_SANITIZE AND NOT KMM_SANITIZE_THREAD)
    # At a random address, and no table of functions that stays writable (install.hardened).
    target_link_options(kmm-${name} PRIVATE -pie LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
  endif()
endfunction()

# kmm_unit(ROOM SOURCES ... [ROOMS ...]): the doctest binary of a room, or of those ROOMS. Links them whole.
function(kmm_unit room)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS;ROOMS" ${ARGN})
  if(NOT arg_ROOMS)
    set(arg_ROOMS ${room})
  endif()
  list(TRANSFORM arg_ROOMS PREPEND kmm_ OUTPUT_VARIABLE libraries)
  list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
  add_executable(unit_${room} $<TARGET_OBJECTS:kmm_doctest_main> ${arg_SOURCES})
  target_include_directories(unit_${room} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(unit_${room} PRIVATE ${libraries} kmm_warnings ${arg_LIBS})
  target_compile_definitions(unit_${room} PRIVATE KMM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # Tests run once: optimising what they say takes longer than running it. The room itself is optimised.
  target_compile_options(unit_${room} PRIVATE -O0)
  # First in line: where the room and its tests both hold an inline function, the room's, with its sanitizers, is
  # linked.
  target_link_options(unit_${room} PRIVATE LINKER:--whole-archive ${files} LINKER:--no-whole-archive)
  add_test(NAME unit.${room} COMMAND unit_${room})
  set_tests_properties(unit.${room} PROPERTIES LABELS unit)
endfunction()

# kmm_test_files(RESULT NAME...): what --source-file of a unit test wants for the cases in NAME_test.cpp.
function(kmm_test_files result)
  list(TRANSFORM ARGN REPLACE "(.+)" "*/\\1_test.cpp")
  list(JOIN ARGN "," files)
  set(${result} "${files}" PARENT_SCOPE)
endfunction()
