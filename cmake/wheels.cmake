# What the wheels need (pyproject.toml, tools/wheel/pyproject.toml).
# LOADLINE_BUILT=FOLDER makes them of what is built there, without a build of their own.

# pip passes no preset.
list(APPEND CMAKE_PREFIX_PATH ${PROJECT_SOURCE_DIR}/build/deps)

# strip_installed(COMPONENT FILE): without symbols, which are half of its bytes.
function(strip_installed component file)
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT ${component})
endfunction()

if(LOADLINE_BUILT)
  file(REAL_PATH ${LOADLINE_BUILT}/plugins/c/libloadline.so library)  # not the link
  install(PROGRAMS ${library} DESTINATION loadline/_lib RENAME libloadline.so
    COMPONENT plugin)
  strip_installed(plugin loadline/_lib/libloadline.so)
  install(PROGRAMS ${LOADLINE_BUILT}/tools/loadline DESTINATION loadline_command/_bin
    COMPONENT command)
  strip_installed(command loadline_command/_bin/loadline)
  add_custom_target(loadline_c)
  add_custom_target(loadline)
endif()
