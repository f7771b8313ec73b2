#include "cli/cmd_dg.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cli/catalogue.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace sparsight::cli {
namespace {

constexpr int64_t kMax = 1'000'000'000;

CLI::App* add_part(CLI::App& verb, const std::string& name, const std::string& summary, const std::string& examples) {
  return add_verb(verb, name, summary, examples);
}

void add_set_option(CLI::App& verb, std::string& set) {
  verb.add_option("--dataset", set, "One of " + component_names("domainbed") + "; folder is any domain/class/image")
      ->capture_default_str()
      ->type_name("NAME");
}

void add_model_option(CLI::App& verb, std::string& model) {
  verb.add_option("--model", model, "One of " + component_names("dg_model") + " (default: DomainBed's)")
      ->type_name("NAME");
}

void add_run_options(CLI::App& verb, DgRunArguments& run) {
  add_set_option(verb, run.set);
  verb.add_option("--data", run.data, "Folder of the dataset (default: its name below SPARSIGHT_DATA or data/)")
      ->type_name("FOLDER");
  add_model_option(verb, run.model);
  verb.add_option("--steps", run.steps, "Updates (default: 5001, as published)")
      ->check(CLI::Range(int64_t{1}, kMax))
      ->type_name("N");
  verb.add_option("--eval-every", run.eval_every, "Updates between evaluations (default: 300, or 100 for MNIST)")
      ->check(CLI::Range(int64_t{1}, kMax))
      ->type_name("N");
  verb.add_option("--image-size", run.image_size, "Side to which images are cropped and resized")
      ->check(CLI::Range(int64_t{8}, int64_t{4096}))
      ->capture_default_str()
      ->type_name("PIXELS");
  cli::add_set_option(verb, run.overrides, "Override a setting of the configuration; may be repeated");
}

// CLI11 reads an empty number as 0.
CLI::Validator a_number() {
  return {[](std::string& text) { return text.empty() ? std::string("there is a number missing") : std::string(); },
          ""};
}

void add_seed_options(CLI::App& verb, int64_t& trial, int64_t& seed) {
  verb.add_option("--trial", trial, "Seed of the trial: the splits of the data")
      ->check(CLI::Range(int64_t{0}, kMax))
      ->capture_default_str()
      ->type_name("N");
  verb.add_option("--hparams-seed", seed, "0: default hyper-parameters; else samples them from their ranges")
      ->check(CLI::Range(int64_t{0}, kMax))
      ->capture_default_str()
      ->type_name("N");
}

void add_format_option(CLI::App& verb, std::string& format) {
  verb.add_option("--format", format, "Format of the tables")
      ->check(CLI::IsMember({"text", "markdown", "csv", "latex", "html"}))
      ->capture_default_str();
}

void add_hparams(CLI::App& dg) {
  const auto arguments = std::make_shared<DgHparamsArguments>();
  CLI::App* verb = add_part(dg, "hparams", "Print an algorithm's hyper-parameters: defaults, ranges, samples",
                            "sparsight dg hparams irm --dataset pacs\n"
                            "sparsight dg hparams erm --dataset domain_net --model gmoe\n"
                            "sparsight dg hparams dann --dataset pacs --hparams-seed 3 --trial 1");
  verb->add_option("algorithm", arguments->algorithm, "Name of the algorithm")->capture_default_str();
  add_set_option(*verb, arguments->set);
  add_model_option(*verb, arguments->model);
  add_seed_options(*verb, arguments->trial, arguments->seed);
  verb->add_flag("--json", arguments->json, "Print one JSON object");
  verb->callback([arguments] { run_dg_hparams(*arguments); });
}

void add_dg_train(CLI::App& dg) {
  const auto arguments = std::make_shared<DgTrainArguments>();
  CLI::App* verb =
      add_part(dg, "train", "Train on all environments but those for testing, and evaluate on every one",
               "sparsight dg train --dataset rotated_mnist --test-envs 0\n"
               "sparsight dg train --dataset pacs --algorithm coral --model gmoe --test-envs 2 --out runs/photo\n"
               "sparsight dg train --dataset folder --data photos --test-envs 1 --model vit");
  verb->add_option("--algorithm", arguments->algorithm, "How to train: sparsight config docs lists them")
      ->capture_default_str()
      ->type_name("NAME");
  verb->add_option("--test-envs", arguments->test_envs, "Environments kept for testing, by number")
      ->delimiter(',')
      ->check(a_number())
      ->capture_default_str()
      ->type_name("N");
  add_seed_options(*verb, arguments->trial, arguments->seed);
  add_run_options(*verb, arguments->run);
  verb->add_option("--out", arguments->out, "Run folder; a run that was stopped goes on there (default: runs/dg/NAME)")
      ->type_name("DIR");
  verb->callback([arguments] { run_dg_train(*arguments); });
}

void add_dg_sweep(CLI::App& dg) {
  const auto arguments = std::make_shared<DgSweepArguments>();
  CLI::App* verb =
      add_part(dg, "sweep", "Run all test environments, hyper-parameter seeds and trials; resumes what is there",
               "sparsight dg sweep --dataset pacs --plan\n"
               "sparsight dg sweep --dataset rotated_mnist --algorithms erm,irm --hparams 1 --no-pairs "
               "--out runs/sweep\n"
               "sparsight dg sweep --datasets pacs,vlcs --models resnet50,vit,gmoe --hparams 1 --no-pairs --published "
               "--out runs/table1\n"
               "sparsight dg sweep --dataset domain_net --models resnet50,vit,gmoe --hparams 1 --single-source --out "
               "runs/table3\n"
               "sparsight dg sweep --dataset pacs --out runs/sweep --slurm sweep.sh && sbatch sweep.sh");
  verb->add_option("--algorithms", arguments->algorithms, "Algorithms, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--models", arguments->models, "Models to compare, separated by commas, instead of --model")
      ->delimiter(',')
      ->type_name("NAME ...");
  verb->add_option("--trials", arguments->trials, "Trials")->check(CLI::Range(int64_t{1}, kMax))->capture_default_str();
  verb->add_option("--hparams", arguments->hparams, "Hyper-parameter seeds; the first is the defaults")
      ->check(CLI::Range(int64_t{1}, kMax))
      ->capture_default_str();
  CLI::Option* no_pairs = verb->add_flag("--no-pairs", arguments->no_pairs,
                                         "Only single test environments; leave-one-domain-out selection needs pairs");
  verb->add_flag("--single-source", arguments->single_source,
                 "Train on each environment alone and test on all others, instead of the usual sets")
      ->excludes(no_pairs);
  add_run_options(*verb, arguments->run);
  verb->add_option("--datasets", arguments->sets, "Datasets, separated by commas, instead of --dataset")
      ->delimiter(',')
      ->type_name("NAME ...");
  verb->add_flag("--published", arguments->published, "Published averages beside the tables in the end");
  arguments->jobs.declare(*verb);
  add_format_option(*verb, arguments->format);
  verb->callback([arguments] { run_dg_sweep(*arguments); });
}

void add_ablate(CLI::App& dg) {
  const auto arguments = std::make_shared<DgAblateArguments>();
  CLI::App* verb = add_part(
      dg, "ablate", "Vary one setting of GMoE at a time, with the same seeds: a row per setting, beside its cost",
      "sparsight dg ablate --dataset pacs --plan\n"
      "sparsight dg ablate --dataset folder --data photos --only router,placement,k --trials 3 --out runs/ablations\n"
      "sparsight dg ablate --dataset pacs --only router --vary router.width=64,256 --vary moe.blocks=[10],[8,10] --out "
      "runs/ablations");
  verb->add_option("--only", arguments->only,
                   "Factors, separated by commas (default: all): " + component_names("ablation") +
                       "; none: only those of --vary")
      ->delimiter(',')
      ->type_name("NAME ...");
  verb->add_option("--vary", arguments->vary, "A factor of your own: any setting and its values; may be repeated")
      ->allow_extra_args(false)
      ->type_name("SECTION.KEY=VALUE,...");
  verb->add_option("--algorithm", arguments->algorithm, "How to train")->capture_default_str()->type_name("NAME");
  verb->add_option("--test-envs", arguments->test_envs, "Environments to test on, each alone (default: every one)")
      ->delimiter(',')
      ->check(a_number())
      ->type_name("N");
  verb->add_option("--trials", arguments->trials, "Trials, whose seeds all settings share")
      ->check(CLI::Range(int64_t{1}, kMax))
      ->capture_default_str();
  add_run_options(*verb, arguments->run);
  arguments->jobs.declare(*verb);
  add_format_option(*verb, arguments->format);
  verb->callback([arguments] { run_dg_ablate(*arguments); });
}

template <class Arguments>
void add_table_options(CLI::App& verb, Arguments& arguments) {
  add_format_option(verb, arguments.format);
  verb.add_option("--baseline", arguments.baseline,
                  "Row from which gains of training on a single source are (default: a ResNet-50, else the first)")
      ->type_name("ROW");
  verb.add_flag("--published", arguments.published, "Published averages beside them");
}

void add_table(CLI::App& dg) {
  const auto arguments = std::make_shared<DgTableArguments>();
  CLI::App* verb = add_part(dg, "table", "Select models and print accuracies by test environment, as DomainBed does",
                            "sparsight dg table runs/sweep\n"
                            "sparsight dg table runs/sweep --format latex\n"
                            "sparsight dg table path/to/domainbed/sweep --published");
  verb->add_option("folder", arguments->folder,
                   "Folder of a sweep or of runs, also DomainBed's own; or a file of dg collect")
      ->required();
  add_table_options(*verb, *arguments);
  verb->callback([arguments] { run_dg_table(*arguments); });
}

void add_collect(CLI::App& dg) {
  const auto arguments = std::make_shared<DgCollectArguments>();
  CLI::App* verb =
      add_part(dg, "collect", "Gather the results of runs from several folders in one file, and print their tables",
               "sparsight dg collect runs/sweep --out results.jsonl\n"
               "sparsight dg collect runs/sweep path/to/domainbed/sweep --out all.jsonl --format markdown\n"
               "sparsight dg table all.jsonl --published");
  verb->add_option("folders", arguments->folders, "Folders of sweeps or of runs, also DomainBed's own")
      ->required()
      ->type_name("FOLDER ...");
  verb->add_option("--out", arguments->out, "File to write: the lines of every results.jsonl, as dg table reads them")
      ->required()
      ->type_name("FILE");
  add_table_options(*verb, *arguments);
  verb->callback([arguments] { run_dg_collect(*arguments); });
}

void add_export_results(CLI::App& dg) {
  const auto arguments = std::make_shared<DgExportArguments>();
  CLI::App* verb =
      add_part(dg, "export", "Write the results of runs as a sweep folder of DomainBed, for its own scripts",
               "sparsight dg export runs/sweep --out domainbed/sweep\n"
               "python -m domainbed.scripts.collect_results --input_dir domainbed/sweep");
  verb->add_option("folders", arguments->folders, "Folders of sweeps or of runs, or files of dg collect")
      ->required()
      ->type_name("FOLDER ...");
  verb->add_option("--out", arguments->out, "Folder to make; must not exist")->required()->type_name("FOLDER");
  verb->callback([arguments] { run_dg_export(*arguments); });
}

void add_cub_dg(CLI::App& dg) {
  const auto arguments = std::make_shared<DgCubArguments>();
  CLI::App* verb =
      add_part(dg, "cub-dg", "Make the dataset cub_dg of CUB-200-2011 and three stylised copies of it",
               "sparsight dg cub-dg CUB_200_2011 --candy candy --mosaic mosaic --udnie udnie --out data/CUB_DG");
  verb->add_option("cub", arguments->cub, "Folder of CUB-200-2011: images/ and its text files")
      ->required()
      ->type_name("FOLDER");
  const std::pair<const char*, std::string*> copies[] = {
      {"--candy", &arguments->candy}, {"--mosaic", &arguments->mosaic}, {"--udnie", &arguments->udnie}};
  for (const auto& [name, folder] : copies)
    verb->add_option(name, *folder, "Folder of the copies in this style: class/file, named as in images/")
        ->required()
        ->type_name("FOLDER");
  verb->add_option("--out", arguments->out, "Folder to make; must not exist")->required()->type_name("FOLDER");
  verb->callback([arguments] { run_dg_cub(*arguments); });
}

}  // namespace

void add_dg(CLI::App& app) {
  CLI::App* dg = add_verb(app, "dg", "Domain generalisation by the protocol of DomainBed",
                          "sparsight dg train --dataset rotated_mnist --algorithm irm --test-envs 0\n"
                          "sparsight dg sweep --dataset colored_mnist --hparams 1 --no-pairs --out runs/sweep\n"
                          "sparsight dg table runs/sweep");
  dg->require_subcommand(1);
  add_hparams(*dg);
  add_dg_train(*dg);
  add_dg_sweep(*dg);
  add_ablate(*dg);
  add_collect(*dg);
  add_export_results(*dg);
  add_table(*dg);
  add_cub_dg(*dg);
}

}  // namespace sparsight::cli
