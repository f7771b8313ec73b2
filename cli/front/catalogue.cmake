# cmake -DPROGRAM=<full program> -DTORCH_ROOT=<libtorch> -DOUTPUT=<file.cpp> -P catalogue.cmake: what `config catalogue`
# prints, as a string.
set(ENV{LD_LIBRARY_PATH} "${TORCH_ROOT}/lib:$ENV{LD_LIBRARY_PATH}")  # the program of a wheel finds it once it is installed
set(ENV{ASAN_OPTIONS} "detect_leaks=0:detect_container_overflow=0")  # libtorch is not instrumented
set(ENV{TSAN_OPTIONS} "report_bugs=0")
execute_process(COMMAND "${PROGRAM}" config catalogue OUTPUT_VARIABLE catalogue COMMAND_ERROR_IS_FATAL ANY)
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT "namespace sparsight::cli {
extern const char catalogue_text[];
const char catalogue_text[] = R\"json(${catalogue})json\";
}  // namespace sparsight::cli
")
