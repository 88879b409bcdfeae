# SPDX-License-Identifier: Apache-2.0
include(GNUInstallDirs)
install(TARGETS kmm-plan kmm-upgrade kmm-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
