#include "sparsight/data/domainbed/published_domains.h"

#include <set>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

// What is wrong with a folder, and what to do.
[[noreturn]] void refuse(const std::string& root, const PublishedDomains& expected, const std::string& what) {
  fail(printable(root), " is not ", expected.name, " as published: ", what, ". Obtain it from ", expected.obtain,
       ", or read it as it is with --dataset folder (data.set = folder)");
}

}  // namespace

const std::vector<PublishedDomains>& published_domains() {
  static const std::vector<PublishedDomains> all{
      {"pacs",
       {"PACS", {"A", "C", "P", "S"}},
       "PACS",
       {"art_painting", "cartoon", "photo", "sketch"},
       7,
       {2048, 2344, 1670, 3929},
       "https://domaingeneralization.github.io (Li et al. 2017)"},
      {"vlcs",
       {"VLCS", {"C", "L", "S", "V"}},
       "VLCS",
       {"Caltech101", "LabelMe", "SUN09", "VOC2007"},
       5,
       {1415, 2656, 3282, 3376},
       "the copy that DomainBed's download script names (Fang et al. 2013)"},
      {"office_home",
       {"OfficeHome", {"A", "C", "P", "R"}},
       "office_home",
       {"Art", "Clipart", "Product", "Real World"},
       65,
       {2427, 4365, 4357, 4439},
       "https://www.hemanthdv.org/officeHomeDataset.html (Venkateswara et al. 2017)"},
      {"terra_incognita",
       {"TerraIncognita", {"L100", "L38", "L43", "L46"}},
       "terra_incognita",
       {"location_100", "location_38", "location_43", "location_46"},
       10,
       {},
       "https://lila.science/datasets/caltech-camera-traps (Beery et al. 2018)"},
      {"domain_net",
       {"DomainNet", {"clip", "info", "paint", "quick", "real", "sketch"}},
       "domain_net",
       {"clipart", "infograph", "painting", "quickdraw", "real", "sketch"},
       345,
       {48129, 51605, 72266, 172500, 172947, 69128},
       "http://ai.bu.edu/M3SDA (Peng et al. 2019), without the duplicates that DomainBed lists",
       1000,
       "floor(2^U(3,5))"},
      {"sviro",
       {"SVIRO", {}},
       "sviro",
       {"aclass", "escape", "hilux", "i3", "lexus", "tesla", "tiguan", "tucson", "x5", "zoe"},
       7,
       {},
       "https://sviro.kl.dfki.de (Dias Da Cruz et al. 2020)"},
      {"cub_dg",
       {"CUB-DG", {}},
       "CUB_DG",
       {"Candy", "Mosaic", "Natural", "Udnie"},
       200,
       {11788, 11788, 11788, 11788},
       "CUB-200-2011 (https://www.vision.caltech.edu/datasets/cub_200_2011) and its stylised copies (Li et al. 2023)"}};
  return all;
}

void check_published(const DataSet& all, const PublishedDomains& expected, const std::string& root) {
  const DataInfo& info = all.info();
  for (const std::string& domain : expected.domains)
    if (std::set(info.domains.begin(), info.domains.end()).count(domain) == 0)
      refuse(root, expected, cat("it has no domain ", domain, " (found: ", join(info.domains), ")"));
  for (const std::string& domain : info.domains)
    if (std::set(expected.domains.begin(), expected.domains.end()).count(domain) == 0)
      refuse(root, expected, cat("it has a further domain ", domain));
  if (static_cast<int64_t>(info.classes.size()) != expected.classes)
    refuse(root, expected, cat("it has ", info.classes.size(), " classes, not ", expected.classes));
  std::vector<std::set<int64_t>> classes(info.domains.size());
  std::vector<int64_t> images(info.domains.size(), 0);
  for (int64_t i = 0; i < all.size(); ++i) {
    const auto domain = static_cast<size_t>(all.domain(i));
    classes.at(domain).insert(all.label(i));
    ++images[domain];
  }
  for (size_t d = 0; d < classes.size(); ++d) {
    for (size_t k = 0; k < info.classes.size(); ++k)
      if (classes[d].count(static_cast<int64_t>(k)) == 0)
        refuse(root, expected, cat("the domain ", info.domains[d], " has no image of the class ", info.classes[k]));
    if (!expected.images.empty() && images[d] != expected.images[d])
      refuse(root, expected,
             cat("the domain ", info.domains[d], " has ", images[d], " images, not ", expected.images[d]));
  }
}

}  // namespace sparsight
