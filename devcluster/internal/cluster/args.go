// SPDX-License-Identifier: Apache-2.0

// The components' command lines, environments, ports and emulated version.

package cluster

import (
	"errors"
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
	// cluster stops. The default is 10 s, which a busy machine may exceed. Nobody else
	// competes for the Leases.
	componentLease = 2 * time.Minute

	// nodeLabel marks the nodes that KWOK manages. Without it a node gets no more
	// heartbeats.
	nodeLabelKey   = "kwok.x-k8s.io/node"
	nodeLabelValue = "fake"
)

func httpsURL(port int) string { return fmt.Sprintf("https://%s:%d", loopback, port) }

// etcdArgs returns etcd's arguments. If durable is false, etcd leaves it to the operating
// system when writes reach the disk.
func etcdArgs(l Layout, p Ports, durable bool) []string {
	args := []string{
		"--name=devcluster",
		"--data-dir=" + l.EtcdData(),
		"--listen-client-urls=" + httpsURL(p.Etcd),
		"--advertise-client-urls=" + httpsURL(p.Etcd),
		"--listen-peer-urls=" + httpsURL(p.EtcdPeer),
		"--initial-advertise-peer-urls=" + httpsURL(p.EtcdPeer),
		"--initial-cluster=devcluster=" + httpsURL(p.EtcdPeer),
		"--socket-reuse-port=true",
		"--client-cert-auth=true",
		"--trusted-ca-file=" + l.Cert(etcdCA),
		"--cert-file=" + l.Cert(etcdServer),
		"--key-file=" + l.Key(etcdServer),
		"--peer-client-cert-auth=true",
		"--peer-trusted-ca-file=" + l.Cert(etcdCA),
		"--peer-cert-file=" + l.Cert(etcdServer),
		"--peer-key-file=" + l.Key(etcdServer),
		"--log-level=warn",
	}
	if !durable {
		args = append(args, "--unsafe-no-fsync=true")
	}
	return args
}

func apiServerArgs(l Layout, p Ports) []string {
	return []string{
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", p.API),
		"--permit-port-sharing=true",
		// The Service kubernetes has no endpoint, because an endpoint must not be a
		// loopback address.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,
		"--tls-cert-file=" + l.Cert(apiServer),
		"--tls-private-key-file=" + l.Key(apiServer),
		"--client-ca-file=" + l.Cert(clusterCA),
		"--etcd-servers=" + httpsURL(p.Etcd),
		"--etcd-cafile=" + l.Cert(etcdCA),
		"--etcd-certfile=" + l.Cert(etcdClient),
		"--etcd-keyfile=" + l.Key(etcdClient),
		"--requestheader-client-ca-file=" + l.Cert(frontProxyCA),
		"--requestheader-allowed-names=" + frontProxyClient,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + l.Cert(frontProxyClient),
		"--proxy-client-key-file=" + l.Key(frontProxyClient),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=" + l.ServiceAccountKey(),
		"--service-account-key-file=" + l.ServiceAccountPublicKey(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--audit-policy-file=" + l.AuditPolicy(),
		"--audit-log-path=" + l.AuditLog(),
	}
}

func controllerManagerArgs(l Layout, p Ports) []string {
	return append(servingArgs(l, ControllerManager, p.ControllerManager),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+l.ServiceAccountKey(),
		"--root-ca-file="+l.Cert(clusterCA),
		"--cluster-signing-cert-file="+l.Cert(clusterCA),
		"--cluster-signing-key-file="+l.Key(clusterCA),
		"--node-monitor-grace-period="+nodeGrace.String(),
	)
}

func schedulerArgs(l Layout, p Ports) []string {
	return servingArgs(l, Scheduler, p.Scheduler)
}

// servingArgs returns the arguments that kube-controller-manager and kube-scheduler
// share.
func servingArgs(l Layout, component string, port int) []string {
	kubeconfig := l.ComponentKubeconfig(component)
	return []string{
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--permit-port-sharing=true",
		"--tls-cert-file=" + l.Cert(component),
		"--tls-private-key-file=" + l.Key(component),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		fmt.Sprintf("--kube-api-qps=%d", clientQPS),
		fmt.Sprintf("--kube-api-burst=%d", 2*clientQPS),
		"--leader-elect-lease-duration=" + componentLease.String(),
		"--leader-elect-renew-deadline=" + (componentLease * 5 / 6).String(),
	}
}

func kwokArgs(l Layout) []string {
	return []string{
		"--kubeconfig=" + l.ComponentKubeconfig(Kwok),
		"--config=" + l.KwokStages(),
		// By label, not by annotation. A watch by label reports a node that loses the
		// label as deleted, and KWOK then stops its heartbeats. KWOK filters annotations
		// itself, and goes on renewing the lease for ever.
		"--manage-nodes-with-label-selector=" + nodeLabelKey + "=" + nodeLabelValue,
		fmt.Sprintf("--node-lease-duration-seconds=%d", int(nodeLease.Seconds())),
		"--cidr=" + podRange,
	}
}

// emulationArgs returns the additional arguments of the components that can emulate a
// version of Kubernetes. All three need them: otherwise kube-scheduler and
// kube-controller-manager list kinds that the API server does not serve, again and again,
// and kube-scheduler never becomes ready.
func emulationArgs(component, version string) []string {
	switch component {
	case APIServer, ControllerManager, Scheduler:
		if version != "" {
			return []string{"--emulated-version=" + version}
		}
	}
	return nil
}

// componentEnv returns the additional environment of a component.
func componentEnv(l Layout, component string) []string {
	// Components connect to this machine only, which needs no HTTP proxy.
	env := []string{"NO_PROXY=*", "no_proxy=*", "KUBECONFIG="}
	if component == Kwok {
		// KWOK also reads ~/.kwok/kwok.yaml unless it has another work directory.
		env = append(env, "KWOK_WORKDIR="+l.Config())
	}
	return env
}

// commandLine formats a command line to print, one argument per line.
func commandLine(component string, args []string) string {
	return component + " \\\n    " + strings.Join(args, " \\\n    ")
}

// portHold reserves a port for a component that is about to listen on it.
//
// It is a socket that is bound but does not listen, so connections are refused until the
// component listens. The component may bind the same port because both sockets have
// SO_REUSEPORT and the same user. Nobody else can, and the kernel does not assign the
// port to processes that ask for any free one. So two clusters that start at the same
// time never get the same port.
type portHold struct {
	port int
	fd   int
}

// holdPort reserves a port of 127.0.0.1: the wanted one, or any free one for 0.
func holdPort(wanted int) (_ *portHold, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	unix.CloseOnExec(fd)
	if wanted != 0 {
		// Connections of an earlier cluster that are still in TIME_WAIT must not block
		// the port.
		if err := setOption(fd, unix.SO_REUSEADDR, 1); err != nil {
			return nil, err
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: wanted, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, describeBindError(wanted, err)
	}
	// Sharing is enabled only after Bind, which would otherwise succeed for a port that
	// another cluster holds.
	if err := errors.Join(setOption(fd, unix.SO_REUSEADDR, 0), setOption(fd, unix.SO_REUSEPORT, 1)); err != nil {
		return nil, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return nil, os.NewSyscallError("getsockname", err)
	}
	return &portHold{port: name.(*unix.SockaddrInet4).Port, fd: fd}, nil
}

func describeBindError(port int, err error) error {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("port %d is in use; choose another, or 0 for any free one", port)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("port %d needs privileges; choose one above 1023, or 0 for any free one", port)
	}
	return fmt.Errorf("reserving port %d: %w", port, os.NewSyscallError("bind", err))
}

func setOption(fd, option, value int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, value))
}

func (h *portHold) release() { _ = unix.Close(h.fd) }

// portHolds holds all reserved ports of a cluster.
type portHolds []*portHold

// holdPorts reserves a port for each listener of a cluster.
func holdPorts(wanted Ports) (Ports, portHolds, error) {
	got := wanted
	var holds portHolds
	for _, want := range got.named() {
		hold, err := holdPort(*want.port)
		if err != nil {
			holds.release()
			return Ports{}, nil, fmt.Errorf("-%s: %w", want.flag, err)
		}
		*want.port = hold.port
		holds = append(holds, hold)
	}
	return got, holds, nil
}

func (h portHolds) release() {
	for _, hold := range h {
		hold.release()
	}
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
		return fmt.Errorf("-%s %s: not MAJOR.MINOR, such as 1.35", flagEmulatedVersion, wanted)
	}
	if versions := EmulatedVersions(); !slices.Contains(versions, wanted) {
		return fmt.Errorf("-%s %s: out of range, the components can emulate %s to %s", flagEmulatedVersion, wanted, versions[0], versions[len(versions)-1])
	}
	return nil
}
