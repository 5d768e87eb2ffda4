// SPDX-License-Identifier: Apache-2.0

// The components' command lines, environments, ports and emulated version.

package cluster

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/compatibility"
)

// The components. These names are also the first argument of this program.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

const (
	loopback = "127.0.0.1"
	// serviceRange holds the addresses of Services. Nothing routes them.
	serviceRange = "10.96.0.0/16"
	// podRange holds the addresses that KWOK gives to Pods. Nothing routes them either.
	podRange = "10.244.0.1/16"

	// A node renews its lease every quarter of nodeLease, 5 s. kube-controller-manager,
	// which checks every 5 s, marks it NotReady nodeGrace after the last renewal: a live
	// node only if five renewals are late.
	nodeLease = 20 * time.Second
	nodeGrace = 28 * time.Second

	// clientQPS is high enough not to limit kube-controller-manager and kube-scheduler
	// here. Their defaults, 20 and 50, are for clusters whose API server has other
	// clients to serve.
	clientQPS = 1000

	// componentLease is the lease duration of kube-controller-manager and kube-scheduler.
	// A component that can't renew its Lease in five sixths of that exits, and the
	// cluster stops. The default is 10 s, which a busy machine may exceed. Nothing else
	// competes for the Leases.
	componentLease = 2 * time.Minute

	// nodeLabel marks the nodes that KWOK manages. Without it, a node gets no heartbeats.
	nodeLabelKey   = "kwok.x-k8s.io/node"
	nodeLabelValue = "fake"
)

func httpsURL(port int) string { return fmt.Sprintf("https://%s:%d", loopback, port) }

// etcdArgs returns etcd's arguments. If durable is false, etcd leaves it to the operating
// system when writes reach the disk.
func etcdArgs(l layout, p ports, durable bool) []string {
	args := []string{
		"--name=devcluster",
		"--data-dir=" + l.etcdData(),
		"--listen-client-urls=" + httpsURL(p.etcd),
		"--advertise-client-urls=" + httpsURL(p.etcd),
		"--listen-peer-urls=" + httpsURL(p.etcdPeer),
		"--initial-advertise-peer-urls=" + httpsURL(p.etcdPeer),
		"--initial-cluster=devcluster=" + httpsURL(p.etcdPeer),
		"--socket-reuse-port=true",
		"--client-cert-auth=true",
		"--trusted-ca-file=" + l.cert(etcdCA),
		"--cert-file=" + l.cert(etcdServer),
		"--key-file=" + l.key(etcdServer),
		"--peer-client-cert-auth=true",
		"--peer-trusted-ca-file=" + l.cert(etcdCA),
		"--peer-cert-file=" + l.cert(etcdServer),
		"--peer-key-file=" + l.key(etcdServer),
		"--log-level=warn",
	}
	if !durable {
		args = append(args, "--unsafe-no-fsync=true")
	}
	return args
}

func apiServerArgs(l layout, p ports) []string {
	return []string{
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", p.api),
		"--permit-port-sharing=true",
		// The Service kubernetes has no endpoint, because an endpoint must not be a
		// loopback address.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,
		"--tls-cert-file=" + l.cert(apiServer),
		"--tls-private-key-file=" + l.key(apiServer),
		"--client-ca-file=" + l.cert(clusterCA),
		"--etcd-servers=" + httpsURL(p.etcd),
		"--etcd-cafile=" + l.cert(etcdCA),
		"--etcd-certfile=" + l.cert(etcdClient),
		"--etcd-keyfile=" + l.key(etcdClient),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=" + l.serviceAccountKey(),
		"--service-account-key-file=" + l.serviceAccountPublicKey(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--audit-policy-file=" + l.auditPolicy(),
		"--audit-log-path=" + l.auditLog(),
	}
}

func controllerManagerArgs(l layout, p ports) []string {
	return append(servingArgs(l, ControllerManager, p.controllerManager),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+l.serviceAccountKey(),
		"--root-ca-file="+l.cert(clusterCA),
		"--cluster-signing-cert-file="+l.cert(clusterCA),
		"--cluster-signing-key-file="+l.key(clusterCA),
		"--node-monitor-grace-period="+nodeGrace.String(),
	)
}

func schedulerArgs(l layout, p ports) []string {
	return servingArgs(l, Scheduler, p.scheduler)
}

// servingArgs returns the arguments that kube-controller-manager and kube-scheduler
// share.
func servingArgs(l layout, component string, port int) []string {
	kubeconfig := l.componentKubeconfig(component)
	return []string{
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--permit-port-sharing=true",
		"--tls-cert-file=" + l.cert(component),
		"--tls-private-key-file=" + l.key(component),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		fmt.Sprintf("--kube-api-qps=%d", clientQPS),
		fmt.Sprintf("--kube-api-burst=%d", 2*clientQPS),
		"--leader-elect-lease-duration=" + componentLease.String(),
		"--leader-elect-renew-deadline=" + (componentLease * 5 / 6).String(),
	}
}

func kwokArgs(l layout) []string {
	return []string{
		"--kubeconfig=" + l.componentKubeconfig(Kwok),
		"--config=" + l.kwokStages(),
		// By label, not by annotation. A watch by label reports a node that loses the
		// label as deleted, and KWOK then stops its heartbeats. KWOK filters annotations
		// itself, and would renew the lease forever.
		"--manage-nodes-with-label-selector=" + nodeLabelKey + "=" + nodeLabelValue,
		fmt.Sprintf("--node-lease-duration-seconds=%d", int(nodeLease.Seconds())),
		"--cidr=" + podRange,
	}
}

// componentEnv returns the additional environment of a component.
func componentEnv(l layout, component string) []string {
	// Components connect to this machine only, which needs no HTTP proxy.
	env := []string{"NO_PROXY=*", "no_proxy=*", "KUBECONFIG="}
	if component == Kwok {
		// KWOK also reads ~/.kwok/kwok.yaml unless it has another work directory.
		env = append(env, "KWOK_WORKDIR="+l.config())
	}
	return env
}

// commandLine formats a command line to print, one argument per line.
func commandLine(component string, args []string) string {
	return component + " \\\n    " + strings.Join(args, " \\\n    ")
}

// portHolds reserve the ports for components that are about to listen on them.
//
// Each is the descriptor of a socket that is bound but does not listen, so connections are
// refused until the component listens. The component may bind the same port because both
// sockets have SO_REUSEPORT and the same user. No other user can, and the kernel does not
// assign the port to processes that request any free port. So two clusters that start at the
// same time never get the same port.
type portHolds []int

func (h portHolds) release() {
	for _, fd := range h {
		_ = unix.Close(fd)
	}
}

// holdPort reserves any free port of 127.0.0.1. It returns the port, and the descriptor for
// portHolds.
func holdPort() (port, fd int, err error) {
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err != nil {
		return 0, 0, os.NewSyscallError("socket", err)
	}
	unix.CloseOnExec(fd)
	err = os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	if err == nil {
		// Enable sharing only after Bind, which could otherwise choose a port that another
		// cluster holds.
		err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	}
	var name unix.Sockaddr
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return 0, 0, fmt.Errorf("reserving a port: %w", err)
	}
	return name.(*unix.SockaddrInet4).Port, fd, nil
}

// ports are the ports that the components listen on, all at 127.0.0.1.
type ports struct {
	api, etcd, etcdPeer, controllerManager, scheduler int
}

// holdPorts reserves a port for each listener of a cluster.
func holdPorts() (held ports, holds portHolds, err error) {
	for _, port := range []*int{&held.api, &held.etcd, &held.etcdPeer, &held.controllerManager, &held.scheduler} {
		var fd int
		if *port, fd, err = holdPort(); err != nil {
			holds.release()
			return ports{}, nil, err
		}
		holds = append(holds, fd)
	}
	return held, holds, nil
}

// majorMinor is the format of a version to emulate. The components accept no patch
// version.
var majorMinor = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// EmulatedVersions returns the minor versions of Kubernetes that the components can
// emulate, from the oldest to their own.
func EmulatedVersions() []string {
	// Kubernetes publishes no list and no lower limit, only whether a version is valid.
	// The components use the same check.
	effective := compatibility.DefaultBuildEffectiveVersion()
	candidate := version.MajorMinor(effective.BinaryVersion().Major(), effective.BinaryVersion().Minor())
	var versions []string
	for {
		effective.SetEmulationVersion(candidate)
		if len(effective.Validate()) > 0 {
			break
		}
		versions = append(versions, candidate.String())
		if candidate.Minor() == 0 {
			break
		}
		candidate = candidate.SubtractMinor(1)
	}
	slices.Reverse(versions)
	return versions
}

// checkEmulatedVersion returns an error for an invalid version. "" means none.
func checkEmulatedVersion(wanted string) error {
	if wanted == "" {
		return nil
	}
	if !majorMinor.MatchString(wanted) {
		return fmt.Errorf("-emulated-version %s: not MAJOR.MINOR, such as 1.35", wanted)
	}
	if versions := EmulatedVersions(); !slices.Contains(versions, wanted) {
		return fmt.Errorf("-emulated-version %s: out of range, the components can emulate %s to %s",
			wanted, versions[0], versions[len(versions)-1])
	}
	return nil
}
