# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. tests/install compares the result with its list of files.
include(GNUInstallDirs)
install(TARGETS kmm-plan kmm-upgrade kmm-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Debug information is a file of its own, where gdb looks for that of a program of this prefix below its
# debug-file-directory.
foreach(tool kmm-plan kmm-upgrade kmm-worker)
  install(CODE "
    set(program \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/${tool}\")
    set(debug \"\${CMAKE_INSTALL_PREFIX}/lib/debug\${program}.debug\")
    get_filename_component(directory \"\$ENV{DESTDIR}\${debug}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${directory}\")
    foreach(command \"--only-keep-debug;\$ENV{DESTDIR}\${program};\$ENV{DESTDIR}\${debug}\"
                    \"--strip-all;--add-gnu-debuglink=\$ENV{DESTDIR}\${debug};\$ENV{DESTDIR}\${program}\")
      execute_process(COMMAND ${CMAKE_OBJCOPY} \${command} COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    file(CHMOD \"\$ENV{DESTDIR}\${debug}\" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)")
endforeach()
# kubectl finds its plugins by name: `kubectl kmm-plan` runs kubectl-kmm_plan.
set(kmm_destination "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}")
foreach(tool plan upgrade)
  set(link "${kmm_destination}/${CMAKE_INSTALL_BINDIR}/kubectl-kmm_${tool}")
  install(CODE "file(CREATE_LINK kmm-${tool} \"${link}\" SYMBOLIC)")
endforeach()
foreach(tool kmm-plan kmm-upgrade kmm-worker)
  install(FILES man/${tool}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES completions/bash/${tool} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES completions/zsh/_${tool} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES completions/fish/${tool}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endforeach()
if(EXISTS ${PROJECT_SOURCE_DIR}/manifests)
  install(DIRECTORY manifests/ DESTINATION ${CMAKE_INSTALL_DATADIR}/kmm-tools/manifests USE_SOURCE_PERMISSIONS)
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The links of the pages lead where they do in the source tree.
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(FILES ARCHITECTURE.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(CODE
    "file(CREATE_LINK ../../kmm-tools/manifests \"${kmm_destination}/${CMAKE_INSTALL_DOCDIR}/manifests\" SYMBOLIC)")
