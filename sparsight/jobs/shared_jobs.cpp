#include "sparsight/jobs/shared_jobs.h"

#include <optional>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/dist/rank_zero.h"

namespace sparsight {

JobStore shared_job_store(dist::Group& group, const JobList& list, const std::string& folder, const std::string& of,
                          const std::string& option) {
  std::optional<JobStore> store;
  dist::from_rank_zero(group, [&] {
    store.emplace(folder, of, option);
    for (const Json& job : list.settings) store->forget_failure(job);
    return std::string();
  });
  if (!store) store = JobStore::open(folder, of, option);
  if (!store)
    fail("rank ", group.rank(), " does not see the folder ", printable(folder),
         " that rank 0 has made; ranks share jobs through a disk that all of them have");
  return *store;
}

void work_with_ranks(const JobList& list, const JobStore& store, const dist::Group& group) {
  if (group.leads())
    work_here(list, store);
  else
    work_along(list, store);
}

}  // namespace sparsight
