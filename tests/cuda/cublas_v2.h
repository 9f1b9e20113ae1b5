#pragma once

// The names of cuBLAS that LibTorch's headers use.
typedef struct cublasContext* cublasHandle_t;
typedef enum { CUBLAS_STATUS_SUCCESS = 0 } cublasStatus_t;
