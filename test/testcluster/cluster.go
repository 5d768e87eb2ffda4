// SPDX-License-Identifier: Apache-2.0

// Development clusters.

package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	startLimit = 2 * time.Minute
	stopLimit  = time.Minute
	// command runs in the cluster. It prints ready once the cluster is up, and ends with
	// its standard input, so that the cluster stops when this process ends in any way.
	ready   = "ready"
	command = "echo " + ready + "; exec cat"
)

// ControlPlaneOnly is a flag of devcluster for a cluster of only an API server and etcd.
// Nothing makes Pods, and none run.
const ControlPlaneOnly = "-without=kube-controller-manager,kube-scheduler,kwok"

// Cluster is a development cluster that this process has started.
type Cluster struct {
	*Process
	// Log contains the output of devcluster.
	Log *Log
	// Data is the directory of the cluster's data, and Kubeconfig the path of the
	// administrator's kubeconfig in it.
	Data, Kubeconfig string

	stdin io.Closer
}

// starting has room for as many clusters as may start at the same time. A start takes all the CPU
// that it gets, so that of many on a busy machine none would be up in time.
var starting = make(chan struct{}, goruntime.NumCPU())

// StartCluster starts devcluster, whose path is program, and returns when the cluster is
// up. Stop ends the cluster.
func StartCluster(ctx context.Context, program, data string, flags ...string) (*Cluster, error) {
	select {
	case starting <- struct{}{}:
		defer func() { <-starting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not up within %v", startLimit))
	defer cancel()
	args := append([]string{"run", "-data-dir=" + data}, flags...)
	devcluster := exec.Command(program, append(args, "--", "sh", "-c", command)...)
	c := &Cluster{Log: &Log{}, Data: data, Kubeconfig: filepath.Join(data, "kubeconfig")}
	devcluster.Stdout, devcluster.Stderr = c.Log, c.Log
	var err error
	if c.stdin, err = devcluster.StdinPipe(); err != nil {
		return nil, err
	}
	if c.Process, err = StartProcess(devcluster); err != nil {
		return nil, err
	}
	if err := c.Log.Await(ctx, c.Process, ready+"\n", 1); err != nil {
		return nil, fmt.Errorf("starting a cluster: %w\n%s", errors.Join(err, c.Stop()), c.Log)
	}
	return c, nil
}

// AuditLog returns the path of the API server's audit log.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Data, "audit.log") }

// Stop ends the cluster, and returns an error if devcluster did not exit cleanly.
// devcluster removes the data.
func (c *Cluster) Stop() error {
	_ = c.stdin.Close() // It may have ended.
	if !c.Wait(stopLimit) {
		c.Kill() // The processes of the cluster end with it.
	}
	if !c.State().Success() {
		return fmt.Errorf("devcluster: %s", c.State())
	}
	return nil
}

// Build compiles a Go program: a package, as seen from a directory, to a file.
func Build(ctx context.Context, folder, output, pkg string, flags ...string) error {
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-buildvcs=false"}, flags, []string{"-o", output, pkg})...)
	build.Dir = folder
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", pkg, folder, err, out)
	}
	return nil
}

// InstallCRDs installs the CustomResourceDefinitions of a tree of this project in a cluster
// with devcluster's kubectl, and returns when they are served.
func InstallCRDs(ctx context.Context, program, kubeconfig, tree string) error {
	_, err := Kubectl(ctx, program, kubeconfig, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(tree, "artifacts/crd"))
	if err == nil {
		_, err = Kubectl(ctx, program, kubeconfig, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	}
	return err
}

// Kubectl runs kubectl and returns what it prints: that of devcluster, whose path is
// program, or the one on PATH if program is empty.
func Kubectl(ctx context.Context, program, kubeconfig string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, append([]string{"kubectl", "--kubeconfig=" + kubeconfig}, args...)...)
	if program == "" {
		command = exec.CommandContext(ctx, "kubectl", command.Args[2:]...)
	}
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// ServiceAccount is the name of the controller's service account in artifacts/deploy, and
// of its namespace.
const ServiceAccount = "sample-controller"

// tokenLifetime is longer than any test runs.
const tokenLifetime = 24 * time.Hour

// LoadConfig reads a kubeconfig. It turns the client's own rate limit off.
func LoadConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Token returns a token of a service account.
func Token(ctx context.Context, admin kubernetes.Interface, namespace, name string) (string, error) {
	token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLifetime.Seconds()))},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("getting a token of service account %s/%s: %w", namespace, name, err)
	}
	return token.Status.Token, nil
}

// ConfigOf returns a client configuration for a service account in admin's cluster.
func ConfigOf(ctx context.Context, admin *rest.Config, namespace, name string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	token, err := Token(ctx, client, namespace, name)
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken, config.QPS = token, -1
	return config, nil
}

// WriteTokenKubeconfig writes a copy of an administrator's kubeconfig whose user is a
// service account. The contexts get the namespace of the account.
func WriteTokenKubeconfig(ctx context.Context, admin kubernetes.Interface, from, to, namespace, name string) error {
	token, err := Token(ctx, admin, namespace, name)
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	}
	for _, c := range config.Contexts {
		c.Namespace = namespace
	}
	return clientcmd.WriteToFile(*config, to)
}

// WriteKubeconfig writes a kubeconfig for a server. The certificate authority may be nil.
func WriteKubeconfig(path, server string, authority []byte, user clientcmdapi.AuthInfo) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos["it"] = &user
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	config.CurrentContext = "it"
	return clientcmd.WriteToFile(*config, path)
}

// permissionLimit bounds the wait until the API server knows new permissions, policies
// and kinds.
const permissionLimit = 90 * time.Second

// Child is an object that a Foo owns, of any kind.
type Child interface {
	metav1.Object
	runtime.Object
}

// AwaitFoosAsOwners waits until an account may create a child with a Foo as its owner. The
// admission plugin OwnerReferencesPermissionEnforcement refreshes its list of kinds only
// every 30 s, and refuses owners of a newer kind. The child is one as the controller
// makes it, of a resource.
func AwaitFoosAsOwners(ctx context.Context, account *rest.Config, namespace string, resource schema.GroupVersionResource, child Child) error {
	return AwaitCreation(ctx, account, namespace, resource, "a child can have a Foo as its owner", child, Succeeded)
}

// AwaitPolicy waits until the admission policy refuses such a child without an owner from
// the controller's account.
func AwaitPolicy(ctx context.Context, account *rest.Config, namespace string, resource schema.GroupVersionResource, child Child) error {
	child.SetOwnerReferences(nil)
	return AwaitCreation(ctx, account, namespace, resource, "the admission policy is in force", child, IsDeniedByPolicy)
}

// AwaitCreation tries to create a child of a resource with an account, as a dry run, until
// wanted accepts the result. what is the condition in the error after a minute and a half.
func AwaitCreation(ctx context.Context, account *rest.Config, namespace string, resource schema.GroupVersionResource, what string, child Child, wanted func(error) bool) error {
	client, err := dynamic.NewForConfig(account)
	if err != nil {
		return err
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(child)
	if err != nil {
		return err
	}
	object, err := Untyped(child, kinds[0])
	if err != nil {
		return err
	}
	return AwaitAnswer(ctx, permissionLimit, what, func(ctx context.Context) error {
		_, err := client.Resource(resource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}, wanted)
}

// Untyped returns an object of a kind as clients without types send it: without a status.
func Untyped(object runtime.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("writing a %s: %w", kind.Kind, err)
	}
	delete(fields, "status")
	untyped := &unstructured.Unstructured{Object: fields}
	untyped.SetGroupVersionKind(kind)
	return untyped, nil
}

// IsDeniedByPolicy reports whether the controller's admission policy refused a request.
func IsDeniedByPolicy(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '") && strings.Contains(err.Error(), "sample-controller may ")
}

// pollPeriod is the period between two checks of a condition.
const pollPeriod = 50 * time.Millisecond

// Await calls check until it returns nil. After the limit, Await returns an error that
// contains what, the condition it waited for, and check's last error.
func Await(ctx context.Context, limit time.Duration, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, limit, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if err != nil && ctx.Err() == nil {
			last = err // but not the error of the ended context
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting at most %v until %s: %w: %w", limit, what, err, last)
	}
	return nil
}

var errSucceeded = errors.New("the request succeeds")

// AwaitAnswer repeats a request until wanted accepts its result. The API server learns of
// new permissions and policies through watches, so it takes a moment to apply them.
func AwaitAnswer(ctx context.Context, limit time.Duration, what string, request func(context.Context) error, wanted func(error) bool) error {
	return Await(ctx, limit, what, func(ctx context.Context) error {
		answer := request(ctx)
		switch {
		case wanted(answer):
			return nil
		case answer == nil:
			return errSucceeded
		}
		return answer
	})
}

// Succeeded makes AwaitAnswer wait for a request without an error.
func Succeeded(err error) bool { return err == nil }

// Devcluster returns the path of the devcluster program, which the environment names, and skips
// the test if it names none.
func Devcluster(t testing.TB) string {
	t.Helper()
	program := os.Getenv("DEVCLUSTER_BIN")
	if program == "" {
		t.Skip("DEVCLUSTER_BIN is not set: the targets of make set it to the absolute path of bin/devcluster")
	}
	return program
}
