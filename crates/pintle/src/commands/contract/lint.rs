//! What clients make of a surface.

use std::process::ExitCode;

use pintle_surface::Surface;

use crate::{cli::ContractFormat, error::StartError, output};

pub fn run(_surface: &Surface, _client: &str, _format: ContractFormat) -> Result<ExitCode, StartError> {
    output::line("");
    Ok(ExitCode::SUCCESS)
}
