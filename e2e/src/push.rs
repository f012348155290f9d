//! Images of local programs.

use std::process::ExitCode;

use clap::Args;
use windlass_node::Program;
use windlass_scenarios::program_images;

use crate::node::image;

/// Packs local programs as images, and pushes them to the registry of a cluster. Prints each image with its
/// digest.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Registry without TLS.
    #[arg(long, env = "E2E_REGISTRY", value_name = "HOST:PORT")]
    registry: String,

    /// Image, and the program that it starts. The nodes of e2e/cluster/run pull it by this name.
    #[arg(required = true, value_name = "IMAGE=PROGRAM [ARGUMENT]...", value_parser = image)]
    images: Vec<(String, Program)>,
}

/// Pushes the images.
///
/// # Errors
///
/// When a program cannot be read, or the registry rejects an image.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let images = arguments.images.into_iter().collect();
    for image in program_images::push(&arguments.registry, &images).await? {
        println!("{image}");
    }
    Ok(ExitCode::SUCCESS)
}
