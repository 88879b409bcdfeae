# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. tests/install compares the result with its list of files.
include(GNUInstallDirs)
install(TARGETS kmm-plan kmm-upgrade kmm-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# kubectl finds its plugins by name: `kubectl kmm-plan` runs kubectl-kmm_plan.
foreach(tool plan upgrade)
  install(CODE "file(CREATE_LINK kmm-${tool} \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/kubectl-kmm_${tool}\" SYMBOLIC)")
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
install(CODE "file(CREATE_LINK ../../kmm-tools/manifests \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}/manifests\" SYMBOLIC)")
