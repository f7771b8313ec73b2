// Folders of figures as earlier versions wrote them: jobs as files jobs/ID.json beside each other, and a figure.json.
#pragma once

#include <string>

namespace sparsight {

// Makes such a folder one of jobs/job_store.h, keeping what is done; any other folder is left as it is. of: as there.
// Raises Error where it holds something else than `of`, or cannot be read.
void convert_old_folder(const std::string& folder, const std::string& of);

// What a folder's jobs.json says of a figure: "pmoe/fig4 at scale small, real data".
std::string figure_jobs_text(const std::string& figure, const std::string& scale, const std::string& stand_in);

}  // namespace sparsight
