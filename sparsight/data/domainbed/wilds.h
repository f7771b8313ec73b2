// The two datasets of WILDS (Koh et al. 2021, "WILDS: A Benchmark of in-the-Wild Distribution Shifts") that DomainBed
// evaluates on, in their official layout. An environment is one value of a column of the metadata; WILDS' own splits
// are ignored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

inline constexpr const char* kWildsAddress = "https://wilds.stanford.edu/get_started (its script downloads both)";

struct WildsImage {
  std::string path;  // below the dataset's folder
  int64_t label = 0, environment = 0;
};

struct WildsTable {
  std::vector<std::string> classes, environments;
  std::vector<WildsImage> images;  // in the order of the metadata
};

// Camelyon17: patches of tissue from five hospitals, with or without tumour.
//   metadata.csv   columns patient, node, x_coord, y_coord, tumor, center (the hospital), among others
//   patches/patient_P_node_N/patch_patient_P_node_N_x_X_y_Y.png
// Environments are the hospitals in ascending order. text: the content of metadata.csv, called `name` in errors. Raises
// Error for a missing column, and naming the line for a value that is none.
WildsTable parse_camelyon17(std::string_view text, const std::string& name);

// FMoW: satellite pictures of 62 kinds of places.
//   rgb_metadata.csv           columns category, country_code, split, among others
//   country_code_mapping.csv   columns alpha-3 (the country's code), region
//   images/rgb_img_ROW.png     ROW: that of the metadata, from 0
// Environments are the regions in the order in which they first appear; countries without a region are in "Other".
// Rows of split "seq" (sequestered) have no image, but count for both numberings.
WildsTable parse_fmow(std::string_view metadata, const std::string& metadata_name, std::string_view countries,
                      const std::string& countries_name);

// Raises Error, ending with where to get the files, unless the table has these numbers; images 0: any.
struct WildsCounts {
  int64_t classes = 0, environments = 0, images = 0;
};
void check_wilds(const WildsTable& table, const WildsCounts& expected, const std::string& root);

// The complete datasets in the folder `root`; domains are the environments. Raises Error if files are missing or differ
// from the published ones. Images are not opened.
DataSetPtr camelyon17(const std::string& root);
DataSetPtr fmow(const std::string& root);

}  // namespace sparsight
