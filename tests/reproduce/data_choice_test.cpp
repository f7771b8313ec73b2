#include "sparsight/reproduce/data_choice.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/reproduce/figure.h"
#include "tests/data/sets/set_files.h"
#include "tests/support/errors.h"

namespace sparsight::data_choice_test {
namespace {

using testing::error_text;
using testing::TemporaryFolder;

const std::vector<DataChoice> kDigits = {{"mnist", "glyphs for MNIST"}};

TEST(ReadData, OtherFilesInMnistsPlaceAreCustomData) {
  const TemporaryFolder folder, other;
  testing::write_mnist(folder, 20, "mnist/");
  testing::write_mnist(other, 30, "mnist/");
  const RunData data = read_data(kDigits, {Scale::small, folder.path()});
  EXPECT_EQ(data.kind, RunData::Kind::custom);
  EXPECT_FALSE(data.is_compared()) << "never beside the paper's numbers";
  EXPECT_EQ(data.text, "mnist: custom data, not the published files, fingerprint " + data.fingerprint);
  EXPECT_EQ(data.files.size(), 4u);
  EXPECT_EQ(data.files[0].at("name"), "t10k-images-idx3-ubyte");
  EXPECT_NE(read_data(kDigits, {Scale::small, other.path()}).fingerprint, data.fingerprint);
}

TEST(ReadData, ASubstituteIsUsedOnlyWhereItIsAskedFor) {
  const RunData data = read_data(kDigits, {Scale::small, ""});
  EXPECT_EQ(data.kind, RunData::Kind::synthetic);
  EXPECT_EQ(data.text, "glyphs for MNIST");
  const TemporaryFolder folder;
  EXPECT_EQ(error_text([&] {
              read_data(kDigits, {Scale::small, folder.path()});
            }),
            "mnist is not complete: there is no t10k-images-idx3-ubyte or t10k-images-idx3-ubyte.gz in " +
                folder.path("mnist") +
                "; run `sparsight data fetch mnist` (`sparsight data where mnist` shows what goes where); --synthetic "
                "uses a synthetic substitute instead");
  EXPECT_EQ(read_data({}, {Scale::small, folder.path()}).kind, RunData::Kind::none);
}

TEST(ReadData, AKnownFingerprintIsNotComputedAgain) {
  FigureRun run{Scale::small, "/no/such/folder"};
  run.fingerprint = "0123456789abcdef";
  EXPECT_EQ(read_data(kDigits, run).fingerprint, run.fingerprint);
}

}  // namespace
}  // namespace sparsight::data_choice_test
