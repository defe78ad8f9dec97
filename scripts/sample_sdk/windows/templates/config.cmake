# @package@ of the sample SDK. Finds its files from its own place, so that it works wherever the SDK is.
get_filename_component(_@package@_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

include(CMakeFindDependencyMacro)
@dependencies@
if(NOT TARGET @target@)
  if(NOT EXISTS "${_@package@_prefix}/@library@")
    message(FATAL_ERROR "@package@: ${_@package@_prefix}/@library@ is missing")
  endif()
  add_library(@target@ SHARED IMPORTED)
  set_target_properties(@target@ PROPERTIES
    IMPORTED_LOCATION "${_@package@_prefix}/@library@"
    IMPORTED_IMPLIB "${_@package@_prefix}/@import_library@"
    INTERFACE_INCLUDE_DIRECTORIES "${_@package@_prefix}/include"
  )
@aliases@endif()

set(@package@_INCLUDE_DIRS "${_@package@_prefix}/include")
set(@package@_LIBRARIES @target@)
unset(_@package@_prefix)
