# The files that `cmake --install` installs: the libraries, their headers under include/gannet, the shared library of the C
# interface with its header, the program with its completions and its man pages, and the files by which another project
# finds them: for find_package(gannet) and for pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY GANNET_LIBRARIES)
get_property(dependencies GLOBAL PROPERTY GANNET_DEPENDENCIES)
list(REMOVE_DUPLICATES dependencies)

# What is installed has no debug information, which would be most of it: the build tree keeps that. A package is stripped
# by its own tools, which make a package of the debug information (debian/rules).
option(GANNET_STRIP "Strip what is installed" ON)
if(GANNET_STRIP)
  install(CODE "set(CMAKE_INSTALL_DO_STRIP ON)")
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gannet)
list(TRANSFORM libraries PREPEND gannet_ OUTPUT_VARIABLE library_targets)
install(TARGETS ${library_targets} EXPORT gannet_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS gannet_shared EXPORT gannet_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES capi/gannet.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS gannet gannet-lab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Each program prints its completions and man pages itself, from the same descriptions of its flags as --help. (A
# sanitizer's program is not installed.)
function(gannet_texts program)
  set(texts ${CMAKE_CURRENT_BINARY_DIR}/texts/${program})
  file(MAKE_DIRECTORY ${texts})
  add_custom_command(
    OUTPUT ${texts}/bash ${texts}/zsh ${texts}/man1/${program}.1
    COMMAND ${program} completion bash > ${texts}/bash
    COMMAND ${program} completion zsh > ${texts}/zsh
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${texts}/man1
    COMMAND ${program} completion man --out ${texts}/man1
    DEPENDS ${program}
    COMMENT "Printing the completions and the man pages of ${program}")
  add_custom_target(${program}_texts ALL DEPENDS ${texts}/bash ${texts}/zsh ${texts}/man1/${program}.1)
  install(FILES ${texts}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${program})
  install(FILES ${texts}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _${program})
  install(DIRECTORY ${texts}/man1/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endfunction()
if(NOT GANNET_SANITIZE)
  gannet_texts(gannet)
  gannet_texts(gannet-lab)
endif()
install(EXPORT gannet_targets NAMESPACE gannet:: FILE gannet-targets.cmake DESTINATION ${package_dir})
# gannet/gannet.h, and what it includes.
set(headers gannet/gannet.h)
set(left ${headers})
while(left)
  list(POP_FRONT left header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  file(STRINGS ${header} lines REGEX "^#include \"[^\"]+\"")
  foreach(line ${lines})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
    if(EXISTS ${PROJECT_SOURCE_DIR}/${included} AND NOT included IN_LIST headers)
      list(APPEND headers ${included})
      list(APPEND left ${included})
    endif()
  endforeach()
endwhile()
foreach(header ${headers})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gannet/${folder})
endforeach()
# README.md and the pages that it links, in their places.
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES capi/gannet.h DESTINATION ${CMAKE_INSTALL_DOCDIR}/capi)

list(TRANSFORM libraries PREPEND "gannet::" OUTPUT_VARIABLE library_exports)
list(JOIN library_exports " " library_exports)
configure_package_config_file(cmake/gannet-config.cmake.in gannet-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(gannet-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gannet-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/gannet-config-version.cmake
              cmake/static-abseil.cmake
        DESTINATION ${package_dir})

# pkg-config: static libraries name those they use after themselves, hence the reversed order.
set(pc_libraries ${libraries})
list(REVERSE pc_libraries)
list(TRANSFORM pc_libraries PREPEND "-lgannet_")
list(JOIN pc_libraries " " pc_libraries)
set(pc_requires ${dependencies})
list(FILTER pc_requires INCLUDE REGEX "^PkgConfig::")
list(TRANSFORM pc_requires REPLACE "^PkgConfig::" "")
list(JOIN pc_requires ", " pc_requires)
# Abseil's libraries are in Libs, as archives; its pkg-config files, which know only the shared libraries, give the flags
# of its headers.
include(cmake/static-abseil.cmake)
set(pc_abseil ${dependencies})
list(FILTER pc_abseil INCLUDE REGEX "^absl::")
list(TRANSFORM pc_abseil REPLACE "^absl::" "absl_" OUTPUT_VARIABLE pc_requires_abseil)
list(JOIN pc_requires_abseil ", " pc_requires_abseil)
gannet_abseil_targets(pc_abseil ${pc_abseil})
set(pc_static_abseil)
set(pc_shared_abseil)
foreach(target ${pc_abseil})
  gannet_abseil_archive(archive ${target})
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    string(REPLACE "absl::" "-labsl_" name ${target})
    list(APPEND pc_shared_abseil ${name})
    if(archive)
      list(APPEND pc_static_abseil ${archive})
    else()
      list(APPEND pc_static_abseil ${name})
    endif()
  endif()
endforeach()
list(JOIN pc_static_abseil " " pc_static_abseil)
list(JOIN pc_shared_abseil " " pc_shared_abseil)
# The file derives its prefix from its own path, so that `cmake --install --prefix` and a moved tree work.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/gannet.pc.in gannet.pc @ONLY)
configure_file(cmake/libgannet.pc.in libgannet.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gannet.pc ${CMAKE_CURRENT_BINARY_DIR}/libgannet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Of archives, in which programs would find most of their size. (CMake itself does not strip archives.)
if(GANNET_STRIP)
  list(TRANSFORM libraries REPLACE "(.+)" "${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:gannet_\\1>" OUTPUT_VARIABLE archives)
  install(CODE "
    foreach(file ${archives})
      cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
      execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug \"\$ENV{DESTDIR}\${file}\" COMMAND_ERROR_IS_FATAL ANY)
    endforeach()")
endif()
