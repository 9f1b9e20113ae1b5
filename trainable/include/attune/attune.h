#pragma once

// The whole SDK, except sync_batch_norm.h and the headers for drivers, torch_trainer.h and
// worker_group.h. It includes torch/types.h, but neither torch/nn nor torch/optim.

#include "attune/amp.h"
#include "attune/checkpoint.h"
#include "attune/collectives.h"
#include "attune/config.h"
#include "attune/context.h"
#include "attune/data_loader.h"
#include "attune/distributed_model.h"
#include "attune/distributed_sampler.h"
#include "attune/download.h"
#include "attune/error.h"
#include "attune/file_lock.h"
#include "attune/main.h"
#include "attune/metrics.h"
#include "attune/trainable.h"
