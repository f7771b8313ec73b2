light_sources(
  jobs/child_process.cpp
  jobs/job_store.cpp
  jobs/plan.cpp
  jobs/run_jobs.cpp
  jobs/shared_jobs.cpp
  jobs/slurm.cpp)
