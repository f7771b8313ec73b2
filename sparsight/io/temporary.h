// Names of temporary files and folders, and the removal of those that killed processes left behind.
#pragma once

#include <string>
#include <string_view>

namespace sparsight {

// The ending of files and folders that are being written.
inline constexpr std::string_view kTemporaryEnding = ".tmp";

// Whether `name` is one that temporary_name() gives for `of` (both without their folder).
bool is_temporary_for(std::string_view of, std::string_view name);

// A name beside `path` that no other thread of this process gets.
std::string temporary_name(const std::string& path);

// Where a write to `path` arrives: `path` itself, or what its links lead to, which need not exist. Raises Error for
// links in a circle. What is renamed must lie beside this place: the link may be on another disk.
std::string behind_links(const std::string& path);

// Removes the temporaries of `path` whose lock nobody holds: their processes were killed. On a disk without locks they
// stay.
void remove_stale_temporaries(const std::string& path);

}  // namespace sparsight
