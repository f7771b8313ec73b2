light_tests(
  dg/ablations_test.cpp
  dg/random_range_test.cpp
  dg/results/results_test.cpp
  dg/selection_test.cpp
  dg/single_source_test.cpp
  dg/speed_table_test.cpp)
torch_tests(
  dg/ablation_run_test.cpp
  dg/algorithms/every_domain_algorithm_test.cpp
  dg/algorithms/hand_steps_test.cpp
  dg/algorithms/penalties_test.cpp
  dg/algorithms/training_rules_test.cpp
  dg/check_runs_test.cpp
  dg/declarations_test.cpp
  dg/domainbed_golden_test.cpp
  dg/pixels_test.cpp
  dg/protocol_test.cpp
  dg/register_for_tests.cpp
  dg/twice_differentiable_test.cpp)
# Its steps are what judge/domainbed_steps_test.py compares with DomainBed's own classes.
if(SPARSIGHT_TORCH)
  add_executable(sparsight_domainbed_steps judge/domainbed_steps.cpp)
  target_link_libraries(sparsight_domainbed_steps PRIVATE sparsight)
  lightly_optimised(sparsight_domainbed_steps)
  program_reuses_precompiled_header(sparsight_domainbed_steps sparsight)
endif()
