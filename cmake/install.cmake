# What an application builds against: a CMake package and pkg-config files. Both find their own prefix, so that an installation can be moved
# and `cmake --install --prefix` may name another one than the configuration did.
#
#   find_package(cairn REQUIRED)                  cairn::cairn        cairn.h, cairn.hpp
#   find_package(cairn REQUIRED COMPONENTS mpi)   cairn::cairn_mpi    cairn_mpi.h too
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/cairn)

install(EXPORT cairn FILE cairn-targets.cmake NAMESPACE cairn:: DESTINATION ${package})
if(TARGET libcairn_mpi)
  install(EXPORT cairn_mpi FILE cairn_mpi-targets.cmake NAMESPACE cairn:: DESTINATION ${package})
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/cairn-config.cmake.in ${CMAKE_BINARY_DIR}/package/cairn-config.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/cairn-config-version.cmake VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/cairn-config.cmake ${CMAKE_BINARY_DIR}/package/cairn-config-version.cmake DESTINATION ${package})

file(RELATIVE_PATH CAIRN_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(library cairn cairn_mpi)
  if(TARGET lib${library})
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${library}.pc.in ${CMAKE_BINARY_DIR}/package/${library}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/package/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endforeach()
