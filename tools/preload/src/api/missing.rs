//! Symbols that are not provided. Arguments are left where they are, which the C calling conventions of Linux allow.

use ptxrace::session::exec::log::Gap;

use crate::code::Code;

/// Says what is wanting, unless it can hardly matter: questions, tools and graphics.
fn missing(name: &'static str) -> u32 {
    const HARMLESS: [&str; 8] =
        ["Get", "Query", "cuGraphics", "cuCoredump", "cuGL", "cuEGL", "cuVDPAU", "Logs"];
    if !HARMLESS.iter().any(|part| name.contains(part)) {
        crate::process::gap(Gap::Call, format!("the program called `{name}`, which is not provided"));
    }
    Code::NOT_SUPPORTED.0
}

macro_rules! missing {
    ($($name:ident)*) => {
        $(
            pub(crate) extern "C" fn $name() -> u32 {
                match std::panic::catch_unwind(|| missing(stringify!($name))) {
                    Ok(code) => code,
                    Err(_) => Code::UNKNOWN.0,
                }
            }
        )*
        /// Names and addresses.
        pub(super) fn table() -> Vec<(&'static str, usize)> {
            vec![$((stringify!($name), $name as *const () as usize)),*]
        }
    };
}

missing! {
    cuLinkComplete cuLinkDestroy cuArrayGetMemoryRequirements cuArrayGetPlane cuArrayGetSparseProperties
    cuCheckpointProcessCheckpoint cuCheckpointProcessGetRestoreThreadId cuCheckpointProcessGetState
    cuCheckpointProcessLock cuCheckpointProcessRestore cuCheckpointProcessUnlock cuCoredumpGetAttribute
    cuCoredumpGetAttributeGlobal cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal cuCtxAttach cuCtxDetach
    cuCtxFromGreenCtx cuCtxGetDevResource cuCtxGetExecAffinity
    cuCtxRecordEvent cuCtxResetPersistingL2Cache cuCtxWaitEvent cuDestroyExternalMemory
    cuDestroyExternalSemaphore cuDevResourceGenerateDesc cuDevSmResourceSplitByCount cuDeviceGetDevResource
    cuDeviceGetExecAffinitySupport cuDeviceGetGraphMemAttribute cuDeviceGetHostAtomicCapabilities
    cuDeviceGetNvSciSyncAttributes cuDeviceGetP2PAtomicCapabilities cuDeviceGetProperties
    cuDeviceGetTexture1DLinearMaxWidth cuDeviceGraphMemTrim cuDeviceRegisterAsyncNotification
    cuDeviceSetGraphMemAttribute cuDeviceSetMemPool cuDeviceUnregisterAsyncNotification
    cuExternalMemoryGetMappedBuffer cuExternalMemoryGetMappedMipmappedArray cuFlushGPUDirectRDMAWrites
    cuFuncSetBlockShape cuFuncSetSharedSize cuGraphAddBatchMemOpNode cuGraphAddExternalSemaphoresSignalNode
    cuGraphAddExternalSemaphoresWaitNode cuGraphAddMemAllocNode cuGraphAddMemFreeNode
    cuGraphBatchMemOpNodeGetParams cuGraphBatchMemOpNodeSetParams cuGraphConditionalHandleCreate
    cuGraphDebugDotPrint cuGraphExecBatchMemOpNodeSetParams cuGraphExecChildGraphNodeSetParams
    cuGraphExecExternalSemaphoresSignalNodeSetParams cuGraphExecExternalSemaphoresWaitNodeSetParams
    cuGraphExternalSemaphoresSignalNodeGetParams cuGraphExternalSemaphoresSignalNodeSetParams
    cuGraphExternalSemaphoresWaitNodeGetParams cuGraphExternalSemaphoresWaitNodeSetParams
    cuGraphKernelNodeCopyAttributes cuGraphMemAllocNodeGetParams cuGraphMemFreeNodeGetParams
    cuGraphNodeGetDependencies_v2 cuGraphNodeGetDependentNodes cuGraphNodeGetDependentNodes_v2
    cuGraphReleaseUserObject cuGraphRetainUserObject cuGraphicsMapResources cuGraphicsMapResources_ptsz
    cuGraphicsResourceGetMappedMipmappedArray cuGraphicsResourceGetMappedPointer
    cuGraphicsResourceGetMappedPointer_v2 cuGraphicsResourceSetMapFlags cuGraphicsResourceSetMapFlags_v2
    cuGraphicsSubResourceGetMappedArray cuGraphicsUnmapResources cuGraphicsUnmapResources_ptsz
    cuGraphicsUnregisterResource cuGreenCtxCreate cuGreenCtxDestroy cuGreenCtxGetDevResource cuGreenCtxGetId
    cuGreenCtxRecordEvent cuGreenCtxStreamCreate cuGreenCtxWaitEvent cuImportExternalMemory
    cuImportExternalSemaphore cuIpcCloseMemHandle cuIpcGetEventHandle cuIpcGetMemHandle cuIpcOpenEventHandle
    cuIpcOpenMemHandle cuIpcOpenMemHandle_v2 cuLaunch cuLaunchCooperativeKernelMultiDevice cuLaunchGrid
    cuLaunchGridAsync cuLibraryGetUnifiedFunction cuLinkAddData cuLinkAddData_v2 cuLinkAddFile
    cuLinkAddFile_v2 cuLinkCreate cuLinkCreate_v2 cuLogsCurrent cuLogsDumpToFile cuLogsDumpToMemory
    cuLogsRegisterCallback cuLogsUnregisterCallback cuMemAddressFree cuMemAddressReserve
    cuMemBatchDecompressAsync cuMemBatchDecompressAsync_ptsz cuMemCreate cuMemDiscardAndPrefetchBatchAsync
    cuMemDiscardAndPrefetchBatchAsync_ptsz cuMemDiscardBatchAsync cuMemDiscardBatchAsync_ptsz
    cuMemExportToShareableHandle cuMemGetAccess cuMemGetAllocationGranularity
    cuMemGetAllocationPropertiesFromHandle cuMemGetDefaultMemPool cuMemGetHandleForAddressRange
    cuMemGetMemPool cuMemImportFromShareableHandle cuMemMap cuMemMapArrayAsync cuMemMapArrayAsync_ptsz
    cuMemPoolCreate cuMemPoolDestroy cuMemPoolExportPointer cuMemPoolExportToShareableHandle
    cuMemPoolGetAccess cuMemPoolImportFromShareableHandle cuMemPoolImportPointer cuMemPoolSetAccess
    cuMemPrefetchBatchAsync cuMemPrefetchBatchAsync_ptsz cuMemRangeGetAttribute cuMemRangeGetAttributes
    cuMemRelease cuMemRetainAllocationHandle cuMemSetAccess cuMemSetMemPool cuMemUnmap cuMemcpy3DBatchAsync
    cuMemcpy3DBatchAsync_ptsz cuMemcpy3DBatchAsync_v2 cuMemcpy3DBatchAsync_v2_ptsz cuMemcpy3DPeer
    cuMemcpy3DPeerAsync cuMemcpy3DPeerAsync_ptsz cuMemcpy3DPeer_ptds cuMemcpyBatchAsync
    cuMemcpyBatchAsync_ptsz cuMemcpyBatchAsync_v2 cuMemcpyBatchAsync_v2_ptsz cuMipmappedArrayCreate
    cuMipmappedArrayDestroy cuMipmappedArrayGetLevel cuMipmappedArrayGetMemoryRequirements
    cuMipmappedArrayGetSparseProperties cuModuleGetSurfRef cuModuleGetTexRef cuMulticastAddDevice
    cuMulticastBindAddr cuMulticastBindMem cuMulticastCreate cuMulticastGetGranularity cuMulticastUnbind
    cuParamSetSize cuParamSetTexRef cuParamSetf cuParamSeti cuParamSetv cuSignalExternalSemaphoresAsync
    cuSignalExternalSemaphoresAsync_ptsz cuStreamBeginCaptureToGraph cuStreamBeginCaptureToGraph_ptsz
    cuStreamCopyAttributes cuStreamCopyAttributes_ptsz cuStreamGetAttribute cuStreamGetAttribute_ptsz
    cuStreamGetGreenCtx cuStreamSetAttribute cuStreamSetAttribute_ptsz cuStreamUpdateCaptureDependencies
    cuStreamUpdateCaptureDependencies_ptsz cuStreamUpdateCaptureDependencies_v2
    cuStreamUpdateCaptureDependencies_v2_ptsz cuSurfRefGetArray cuSurfRefSetArray
    cuTensorMapEncodeIm2col cuTensorMapEncodeIm2colWide cuTexObjectGetResourceViewDesc cuTexRefCreate
    cuTexRefDestroy cuTexRefGetAddress cuTexRefGetAddressMode cuTexRefGetAddress_v2 cuTexRefGetArray
    cuTexRefGetBorderColor cuTexRefGetFilterMode cuTexRefGetFlags cuTexRefGetFormat cuTexRefGetMaxAnisotropy
    cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias
    cuTexRefGetMipmapLevelClamp cuTexRefGetMipmappedArray cuTexRefSetAddress cuTexRefSetAddress2D
    cuTexRefSetAddress2D_v2 cuTexRefSetAddress2D_v3 cuTexRefSetAddressMode cuTexRefSetAddress_v2
    cuTexRefSetArray cuTexRefSetBorderColor cuTexRefSetFilterMode cuTexRefSetFlags cuTexRefSetFormat
    cuTexRefSetMaxAnisotropy cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias
    cuTexRefSetMipmapLevelClamp cuTexRefSetMipmappedArray cuUserObjectCreate cuUserObjectRelease
    cuUserObjectRetain cuWaitExternalSemaphoresAsync cuWaitExternalSemaphoresAsync_ptsz
}
