#include "executor/agent/hello.h"

#include "base/version.h"
#include "executor/agent/data_folder.h"
#include "executor/agent/messages.h"
#include "executor/gang/folders.h"
#include "executor/processes/environment.h"
#include "executor/transfer/remover.h"
#include "object_storage/rclone.h"

namespace attune::agent {

v1::Hello MakeHello(const AgentOptions& options, int64_t started_us, const DirectSender& direct,
                    const NumbersFile& log_position_file) {
  v1::Hello hello;
  hello.set_token(options.token);
  hello.set_version(options.version);
  hello.set_format(kFormat);
  hello.set_name(options.name);
  hello.set_instance(options.instance);
  hello.set_started_us(started_us);
  hello.set_address(options.host.address.empty() ? options.address : options.host.address);
  hello.set_spans(!options.host.address.empty());
  hello.set_pieces_port(direct.port());
  if (direct.port() > 0) hello.set_pieces_key(direct.key());
  hello.set_stores(object_storage::HasRclone(gang::ProgramEnvironment({})));
  hello.set_temporary_data(options.temporary_data);
  hello.set_folder(FolderIdentity(options.data_dir));
  for (const SweepFiles& files : ListSweeps(gang::Folders(options.data_dir)))
    AddSweepFiles(files, *hello.mutable_sweeps());
  if (const auto seen = log_position_file.Read()) {
    hello.set_identity(seen->at(0));
    hello.set_log_seq(seen->at(1));
    hello.set_server_run(seen->at(2));
  }
  hello.mutable_labels()->insert(options.labels.begin(), options.labels.end());
  hello.mutable_resources()->set_cpus(options.resources.cpus);
  hello.mutable_resources()->set_gpus(options.resources.gpus);
  hello.mutable_resources()->set_memory_bytes(options.resources.memory_bytes);
  return hello;
}

}  // namespace attune::agent
