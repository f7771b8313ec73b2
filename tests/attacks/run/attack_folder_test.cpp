// The folder of an attack: what stays of one that was refused.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "sparsight/attacks/run/attack_folder.h"
#include "sparsight/core/interrupt.h"
#include "tests/support/program.h"

namespace sparsight::attack_folder_test {

namespace fs = std::filesystem;

TEST(AttackFolder, NothingStaysOfAnAttackWithoutAPiece) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("attacks/pgd");
  AttackFolder(path, {{"seed", 1}}).begin(16, 1000);
  EXPECT_FALSE(fs::exists(folder.path("attacks")));
  EXPECT_EQ(AttackFolder(path, {{"seed", 2}}).batch(), 0);  // another attack may have the name
  // One that was there before stays, empty.
  fs::create_directories(path);
  AttackFolder(path, {{"seed", 1}}).begin(16, 1000);
  EXPECT_TRUE(fs::is_empty(path));
}

TEST(AttackFolder, APieceAStateAnInterruptAndAResultKeepIt) {
  const testing::TemporaryFolder folder;
  {
    AttackFolder begun(folder.path("piece"), {{"seed", 1}});
    begun.begin(16, 1000);
    fs::create_directories(begun.piece_path(0, 16));
  }
  EXPECT_EQ(AttackFolder(folder.path("piece"), {{"seed", 1}}).batch(), 16);
  {
    AttackFolder begun(folder.path("within"), {{"seed", 1}});
    begun.begin(16, 1000);
    fs::create_directories(folder.path("within/pieces"));
    folder.write("within/pieces/" + fs::path(AttackFolder::state_path(begun.path(), 0, 16)).filename().string(), "");
    EXPECT_TRUE(begun.pieces().empty());
  }
  EXPECT_EQ(AttackFolder(folder.path("within"), {{"seed", 1}}).batch(), 16);
  {
    AttackFolder begun(folder.path("stopped"), {{"seed", 1}});
    begun.begin(8, 1000);
    set_interrupted(true);
  }
  set_interrupted(false);
  EXPECT_EQ(AttackFolder(folder.path("stopped"), {{"seed", 1}}).batch(), 8);
  {
    AttackFolder begun(folder.path("done"), {{"seed", 1}});
    begun.begin(4, 1000);
    begun.finish({{"images", 4}});
  }
  EXPECT_TRUE(AttackFolder(folder.path("done"), {{"seed", 1}}).result().has_value());
}

TEST(AttackFolder, AFinishedOneLosesThePiecesOfAKilledProcess) {
  const testing::TemporaryFolder folder;
  {
    AttackFolder begun(folder.path("done"), {{"seed", 1}});
    begun.begin(4, 1000);
    begun.finish({{"images", 4}});
  }
  fs::create_directory(folder.path("done/pieces"));
  EXPECT_TRUE(AttackFolder(folder.path("done"), {{"seed", 1}}).result().has_value());
  EXPECT_FALSE(fs::exists(folder.path("done/pieces")));
}

}  // namespace sparsight::attack_folder_test
