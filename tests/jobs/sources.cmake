light_tests(
  jobs/job_store_test.cpp
  jobs/plan_test.cpp
  jobs/run_jobs_test.cpp
  jobs/slurm_test.cpp)
