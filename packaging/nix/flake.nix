# SPDX-License-Identifier: BSD-2-Clause
# nix build 'git+file:PATH-OF-THIS-TREE?dir=packaging/nix'
{
  description = "Continuous profiler for the whole machine and for code made at run time";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      source = ../..;
      # CMakeLists.txt alone has the version.
      version = builtins.head (builtins.match ".*project\\(dcpi VERSION ([0-9.]+).*"
        (builtins.readFile (source + "/CMakeLists.txt")));
      forEach = nixpkgs.lib.genAttrs [ "x86_64-linux" "aarch64-linux" ];
    in {
      packages = forEach (system:
        let pkgs = nixpkgs.legacyPackages.${system}; in {
          default = pkgs.stdenv.mkDerivation {
            pname = "dcpi";
            inherit version;
            src = source;
            # The programs for BPF are compiled without the wrapper's flags, which are for the machine's own code.
            nativeBuildInputs = with pkgs; [ cmake ninja pkg-config llvmPackages.clang-unwrapped bpftools ];
            buildInputs = with pkgs; [
              elfutils xz libffi json_c capstone zydis libarchive curl libbpf zstd zlib ncurses
            ];
            cmakeFlags = [
              "-DDCPI_TESTS=OFF"
              "-DDCPI_JVM_AGENT=OFF"
              "-DDCPI_CLANG=${pkgs.llvmPackages.clang-unwrapped}/bin/clang"
              "-DCMAKE_INSTALL_SYSCONFDIR=${placeholder "out"}/etc"
            ];
            meta = {
              homepage = "https://dcpi.example/";
              license = pkgs.lib.licenses.bsd2;
              platforms = [ "x86_64-linux" "aarch64-linux" ];
              mainProgram = "dcpi";
            };
          };
        });
    };
}
