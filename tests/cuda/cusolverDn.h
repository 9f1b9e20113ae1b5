#pragma once

// The names of cuSOLVER that LibTorch's headers use.
typedef struct cusolverDnContext* cusolverDnHandle_t;
