#include "sparsight/data/fingerprint.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "sparsight/data/remote_sets.h"
#include "tests/data/sets/set_files.h"

namespace sparsight::fingerprint_test {
namespace {

using testing::TemporaryFolder;

TEST(Fingerprint, IsOfTheContentNotOfItsPacking) {
  const TemporaryFolder plain, packed, other;
  testing::write_mnist(plain, 20);
  testing::write_mnist(packed, 20, "raw/", /*packed=*/true);
  testing::write_mnist(other, 21);
  const DataPlace& place = find_data_place("mnist");
  const DataFingerprint found = data_fingerprint(place, plain.path());
  EXPECT_EQ(found.hex.size(), kFingerprintDigits);
  EXPECT_EQ(data_fingerprint(place, packed.path()).hex, found.hex);
  EXPECT_NE(data_fingerprint(place, other.path()).hex, found.hex);
  EXPECT_EQ(found.published, false);
}

TEST(Fingerprint, NobodyPublishedChecksumsOfPhotographs) {
  const TemporaryFolder folder;
  folder.write("ferns/a.jpg", "x");
  folder.write("b.png", "y");
  folder.write("notes.txt", "z");
  const DataFingerprint found = data_fingerprint(find_data_place("plants"), folder.path());
  ASSERT_EQ(found.files.size(), 2u) << "only what is read counts";
  EXPECT_EQ(found.files[1].name, "ferns/a.jpg");
  EXPECT_FALSE(found.published.has_value());
}

TEST(Fingerprint, KnowsThePublishedFiles) {
  const char* home = std::getenv("SPARSIGHT_DATA");
  if (!home || !path_exists(std::string(home) + "/mnist")) GTEST_SKIP() << "needs mnist/ below SPARSIGHT_DATA";
  EXPECT_EQ(data_fingerprint(find_data_place("mnist"), std::string(home) + "/mnist").published, true);
}

TEST(DataPlaces, HaveEverySetThatCanBeFetched) {
  for (const RemoteSet& set : remote_sets()) EXPECT_EQ(find_data_place(set.name).title, set.title);
}

}  // namespace
}  // namespace sparsight::fingerprint_test
