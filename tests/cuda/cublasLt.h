#pragma once

// The names of cuBLASLt that LibTorch's headers use.
typedef struct cublasLtContext* cublasLtHandle_t;
