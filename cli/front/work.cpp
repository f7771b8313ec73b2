// The work of the verbs in the front program. (The work of `bench` and `version` needs no libtorch.)
#include "cli/cmd_attack.h"
#include "cli/cmd_compare.h"
#include "cli/cmd_config.h"
#include "cli/cmd_data.h"
#include "cli/cmd_demo.h"
#include "cli/cmd_dg.h"
#include "cli/cmd_doctor.h"
#include "cli/cmd_eval.h"
#include "cli/cmd_explain.h"
#include "cli/cmd_export.h"
#include "cli/cmd_inspect.h"
#include "cli/cmd_models.h"
#include "cli/cmd_moe.h"
#include "cli/cmd_predict.h"
#include "cli/cmd_prune.h"
#include "cli/cmd_report.h"
#include "cli/cmd_reproduce.h"
#include "cli/cmd_serve.h"
#include "cli/cmd_superclass.h"
#include "cli/cmd_sweep.h"
#include "cli/cmd_train.h"
#include "cli/cmd_watch.h"
#include "cli/cmd_weights.h"
#include "cli/front/start_full_program.h"

namespace sparsight::cli {

void run_attack_verb(const AttackArguments&) { start_full_program(); }
void run_compare(const CompareArguments&) { start_full_program(); }
void run_config_show(const ConfigArguments&) { start_full_program(); }
void run_config_check(const ConfigArguments&) { start_full_program(); }
void run_config_cost(const ConfigCostArguments&) { start_full_program(); }
void run_config_catalogue() { start_full_program(); }
void run_config_docs(const std::vector<std::string>&) { start_full_program(); }
void run_data_list() { start_full_program(); }
void run_data_inspect(const SetArguments&) { start_full_program(); }
void run_data_verify(const SetArguments&) { start_full_program(); }
void run_data_make(const DataMakeArguments&) { start_full_program(); }
void run_data_shard(const DataShardArguments&) { start_full_program(); }
void run_data_fetch(const DataFetchArguments&) { start_full_program(); }
void run_data_where(const std::string&) { start_full_program(); }
void run_demo(const DemoArguments&) { start_full_program(); }
void run_dg_ablate(const DgAblateArguments&) { start_full_program(); }
void run_dg_collect(const DgCollectArguments&) { start_full_program(); }
void run_dg_cub(const DgCubArguments&) { start_full_program(); }
void run_dg_export(const DgExportArguments&) { start_full_program(); }
void run_dg_hparams(const DgHparamsArguments&) { start_full_program(); }
void run_dg_sweep(const DgSweepArguments&) { start_full_program(); }
void run_dg_table(const DgTableArguments&) { start_full_program(); }
void run_dg_train(const DgTrainArguments&) { start_full_program(); }
void run_doctor(const std::string&) { start_full_program(); }
void run_eval(const EvalArguments&) { start_full_program(); }
void run_explain(const ExplainArguments&) { start_full_program(); }
void run_export(const ExportArguments&) { start_full_program(); }
void run_inspect(const InspectArguments&) { start_full_program(); }
void run_models_list(const ModelsArguments&) { start_full_program(); }
void run_models_show(const ModelsArguments&) { start_full_program(); }
void run_moe(const MoeArguments&) { start_full_program(); }
void run_predict(const PredictArguments&) { start_full_program(); }
void run_prune(const PruneArguments&) { start_full_program(); }
void run_report(const ReportArguments&) { start_full_program(); }
void run_reproduce(const ReproduceArguments&) { start_full_program(); }
void run_serve(const ServeArguments&) { start_full_program(); }
void run_superclass(const SuperclassArguments&) { start_full_program(); }
void run_superclass_compare(const SuperclassCompareArguments&) { start_full_program(); }
void run_superclass_train(const SuperclassTrainArguments&) { start_full_program(); }
void run_sweep(const SweepArguments&) { start_full_program(); }
void run_train(const TrainArguments&) { start_full_program(); }
void run_watch(const WatchArguments&) { start_full_program(); }
void run_weights_convert(const WeightsConvertArguments&) { start_full_program(); }
void run_weights_merge(const WeightsMergeArguments&) { start_full_program(); }
void run_weights_publish(const WeightsPublishArguments&) { start_full_program(); }
void run_weights_shard(const WeightsShardArguments&) { start_full_program(); }

}  // namespace sparsight::cli
