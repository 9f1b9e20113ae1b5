#pragma once

// What LibTorch's headers name of cuBLASLt.
typedef struct cublasLtContext* cublasLtHandle_t;
