// Runs the built sparsight program in tests, as a user would.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

namespace sparsight::testing {

struct ProgramOptions {
  std::string input = {};                               // stdin; empty: closed
  std::map<std::string, std::string> environment = {};  // added to the test's own
  double timeout_seconds = 60;                          // then it is killed
  std::string folder = {};                              // working directory; empty: the test's own
};

struct ProgramResult {
  int exit_code = -1;  // 128 + signal if one ended it
  bool timed_out = false;
  std::string out, err;
};

// A program in the background, for tests that interrupt or kill it.
class Program {
 public:
  // `arguments`: after the program's name. `program`: empty: the built sparsight.
  Program(std::vector<std::string> arguments, ProgramOptions options = {}, const std::string& program = "");
  ~Program();  // kills it if it still runs
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send(int signal);
  ProgramResult wait();

 private:
  void collect();

  ProgramOptions options_;
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;  // our ends of its pipes
  ProgramResult result_;
  std::thread collector_;
};

ProgramResult run_program(std::vector<std::string> arguments, ProgramOptions options = {});

// A fresh folder, removed with everything in it at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file (making its folders) and returns its path.
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::string path_;
};

}  // namespace sparsight::testing
