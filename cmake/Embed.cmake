# gannet_embed(target HEADER_NAMESPACE): see below. As a script (cmake -P, with OUTPUT and FILES), it writes a .cc file with
# the contents of files as constants.
#
# gannet_embed(target output.cc NAME=file ...): compiles the contents of each file into the target, as
#   extern const std::string_view NAME;   in namespace gannet::cli::embedded
# The file is read when the target is built, never when it runs.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Made by cmake/Embed.cmake.\n#include <string_view>\n\nnamespace gannet::cli::embedded {\n\n")
  foreach(each ${FILES})
    string(REGEX MATCH "^([^=]+)=(.*)$" matched "${each}")
    set(name ${CMAKE_MATCH_1})
    file(READ "${CMAKE_MATCH_2}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    # Lines of 32 bytes, for debuggers and for people.
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
    string(APPEND text "static constexpr unsigned char ${name}Bytes[] = {\n${bytes}};\n"
                       "extern const std::string_view ${name};\n"
                       "const std::string_view ${name}(reinterpret_cast<const char*>(${name}Bytes), sizeof(${name}Bytes));\n\n")
  endforeach()
  file(WRITE "${OUTPUT}" "${text}}  // namespace gannet::cli::embedded\n")
  return()
endif()

set(GANNET_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(gannet_embed target output)
  set(files)
  foreach(each ${ARGN})
    string(REGEX REPLACE "^[^=]+=" "" file "${each}")
    list(APPEND files ${file})
  endforeach()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DFILES=${ARGN}" -P ${GANNET_EMBED_SCRIPT}
    DEPENDS ${files} ${GANNET_EMBED_SCRIPT}
    COMMENT "Embedding files into ${target}"
    VERBATIM)
  set_source_files_properties(${output} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${output})
endfunction()
