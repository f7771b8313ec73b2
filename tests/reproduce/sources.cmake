light_tests(
  reproduce/config_claim_test.cpp
  reproduce/job_store_test.cpp
  reproduce/pmoe_figures_test.cpp
  reproduce/result_charts_test.cpp
  reproduce/result_text_test.cpp
  reproduce/results_test.cpp
  reproduce/run_figure_test.cpp)
