// A list of jobs shared out over the ranks of a group, through a folder that all of them see: a rank takes the next job
// that nobody runs. So results do not depend on the number of ranks.
#pragma once

#include <string>

#include "sparsight/dist/group.h"
#include "sparsight/jobs/run_jobs.h"

namespace sparsight {

// Rank 0 makes the folder, or opens it, and forgets which of the jobs have failed, so that they are retried; the other
// ranks open it. The arguments are JobStore's. Raises Error as JobStore does, and on a rank that does not see the
// folder.
JobStore shared_job_store(dist::Group& group, const JobList& list, const std::string& folder, const std::string& of,
                          const std::string& option = "--run");

// As work_here(), on every rank: returns when all jobs are done or failed. Waits for no rank but in that.
void work_with_ranks(const JobList& list, const JobStore& store, const dist::Group& group);

}  // namespace sparsight
