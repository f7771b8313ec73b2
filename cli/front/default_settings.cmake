# cmake -DPROGRAM=<full program> -DOUTPUT=<file.cpp> -P default_settings.cmake: its default settings as a C++ string.
set(ENV{ASAN_OPTIONS} "detect_leaks=0:detect_container_overflow=0")  # libtorch is not instrumented
set(ENV{TSAN_OPTIONS} "report_bugs=0")
execute_process(COMMAND "${PROGRAM}" config show OUTPUT_VARIABLE settings COMMAND_ERROR_IS_FATAL ANY)
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT "namespace sparsight::cli {
extern const char default_settings[];
const char default_settings[] = R\"toml(${settings})toml\";
}  // namespace sparsight::cli
")
