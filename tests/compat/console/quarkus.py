"""The console for Kafka of Quarkus's development mode, from pinned jars: no Maven, no compiler.

The jars are those of `quarkus:dependency-tree -Dmode=dev` for an application of quarkus-kafka-client and
quarkus-vertx-http alone, less what only Maven, containers and charts want.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from penstock.jvm.jars import Jar, provide_jars, read_lock
from penstock.jvm.java import find_java
from penstock.process.cache import cache_folder
from penstock.process.free_port import free_port

LOCK = Path(__file__).with_name("quarkus.jars")
PAGES = "/q/dev-ui/io.quarkus.quarkus-kafka-client"
_EXTENSION = "META-INF/quarkus-extension.properties"
_ASKED_FOR = {"quarkus-kafka-client", "quarkus-vertx-http"}
# What starts the rest; more than that, and Java would find a class of the application twice.
_STARTERS = ("quarkus-bootstrap-", "quarkus-core-deployment", "quarkus-development-mode-spi", "quarkus-builder",
             "quarkus-classloader-commons", "quarkus-fs-util", "jboss-logg", "jboss-logm", "smallrye-common-io",
             "smallrye-common-os", "smallrye-common-constraint", "smallrye-common-expression",
             "smallrye-common-function", "smallrye-common-net", "smallrye-common-ref", "smallrye-common-cpu",
             "jakarta.json-api", "parsson")  # fmt: skip
_SETTINGS = {
    "quarkus.http.host": "127.0.0.1",
    "quarkus.analytics.disabled": "true",
    "quarkus.kafka.devservices.enabled": "false",
    "quarkus.test.continuous-testing": "disabled",
    "quarkus.native.builder-image": "none",  # its default stands in a bill of materials, which Maven would read
    "java.util.logging.manager": "org.jboss.logmanager.LogManager",
}


@contextmanager
def console_on(address: str, folder: Path) -> Iterator[str]:
    """The address of a running console that looks at the broker at `address`; what it says is in `folder`."""
    paths = dict(zip(read_lock(LOCK), provide_jars(LOCK, cache_folder(os.environ)), strict=True))
    starters = [str(path) for jar, path in paths.items() if jar.artifact.startswith(_STARTERS)]
    port = free_port()
    settings = _SETTINGS | {"quarkus.http.port": str(port), "kafka.bootstrap.servers": address}
    classes = folder / "target" / "classes"
    classes.mkdir(parents=True)
    with (folder / "console.log").open("w") as log:
        gateway_port, secret, process = launch_gateway(
            java_path=str(find_java(os.environ)),
            classpath=os.pathsep.join(starters),
            javaopts=[
                "-Xmx512m",
                "-XX:TieredStopAtLevel=1",
                *(f"-D{name}={value}" for name, value in settings.items()),
            ],
            enable_auth=True,
            die_on_exit=True,
            create_new_process_group=True,
            redirect_stdout=log,
            redirect_stderr=log,
            cwd=str(folder),
            return_proc=True,
        )
        # Without memory management: else py4j calls the ended JVM whenever Python collects an object of it.
        parameters = GatewayParameters(port=gateway_port, auth_token=secret, enable_memory_management=False)
        gateway = JavaGateway(gateway_parameters=parameters)
        try:
            quarkus = gateway.jvm.io.quarkus
            model = _model(gateway.jvm, paths, classes)
            quarkus.deployment.dev.DevModeMain(_context(gateway, model, folder), model).start()
            yield f"http://127.0.0.1:{port}{PAGES}"
        finally:
            gateway.close()
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()


def _model(jvm: Any, paths: dict[Jar, Path], classes: Path) -> Any:
    """What Quarkus knows of an application: here nothing but extensions and what these need."""
    flags = jvm.io.quarkus.maven.dependency.DependencyFlags
    builder = jvm.io.quarkus.bootstrap.model.ApplicationModelBuilder()
    builder.setAppArtifact(_artifact(jvm, "penstock", "console", "1", classes, 0))
    for jar, path in paths.items():
        told = _extension(path)
        flag = flags.DEPLOYMENT_CP | flags.RUNTIME_CP
        if told is not None:
            flag |= flags.RUNTIME_EXTENSION_ARTIFACT
        if jar.artifact in _ASKED_FOR:
            flag |= flags.DIRECT | flags.TOP_LEVEL_RUNTIME_EXTENSION_ARTIFACT
        artifact = _artifact(jvm, jar.group, jar.artifact, jar.version, path, flag)
        builder.addDependency(artifact)
        if told is None:
            continue
        properties = jvm.java.util.Properties()
        properties.load(jvm.java.io.StringReader(told))
        builder.handleExtensionProperties(properties, artifact.getKey())
        provides, requires = (properties.getProperty(f"{what}-capabilities") for what in ("provides", "requires"))
        if provides:
            contract = jvm.io.quarkus.bootstrap.model.CapabilityContract
            builder.addExtensionCapabilities(contract.of(str(jar), provides, requires))
    return builder.build()


def _extension(path: Path) -> str | None:
    with zipfile.ZipFile(path) as jar:
        return jar.read(_EXTENSION).decode() if _EXTENSION in jar.namelist() else None


def _artifact(jvm: Any, group: str, name: str, version: str, path: Path, flags: int) -> Any:
    artifact = jvm.io.quarkus.maven.dependency.ResolvedDependencyBuilder.newInstance()
    artifact.setGroupId(group)
    artifact.setArtifactId(name)
    artifact.setVersion(version)
    artifact.setResolvedPath(jvm.java.io.File(str(path)).toPath())
    artifact.setFlags(flags)
    return artifact


def _context(gateway: JavaGateway, model: Any, folder: Path) -> Any:
    """Where development mode would find sources to watch: there are none."""
    jvm = gateway.jvm
    context = jvm.io.quarkus.deployment.dev.DevModeContext()
    nothing = jvm.io.quarkus.paths.PathList.empty()
    module = jvm.io.quarkus.deployment.dev.DevModeContext.ModuleInfo.Builder()
    module.setArtifactKey(model.getAppArtifact().getKey())
    module.setName("console")
    module.setProjectDirectory(str(folder))
    module.setClassesPath(str(folder / "target" / "classes"))
    module.setResourcesOutputPath(str(folder / "target" / "classes"))
    module.setTargetDir(str(folder / "target"))
    module.setPreBuildOutputDir(str(folder / "target"))
    for setter in ("SourcePaths", "ResourcePaths", "SourceParents", "TestSourcePaths", "TestResourcePaths"):
        getattr(module, f"set{setter}")(nothing)
    context.setApplicationRoot(module.build())
    context.setProjectDir(jvm.java.io.File(str(folder)))
    context.setBaseName("console")
    context.setAbortOnFailedStart(True)
    context.setMode(jvm.io.quarkus.bootstrap.app.QuarkusBootstrap.Mode.DEV)
    context.setArgs(gateway.new_array(jvm.java.lang.String, 0))
    return context
